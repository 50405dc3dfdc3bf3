#include "options/fields.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

struct ValueText {
  std::string operator()(const std::int64_t* value) const { return fmt::format("{}", *value); }
  std::string operator()(const double* value) const { return fmt::format("{}", *value); }  // shortest that reads back
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const std::filesystem::path* value) const { return value->string(); }
  std::string operator()(const std::vector<std::filesystem::path>* value) const {
    std::string text;
    for (const std::filesystem::path& path : *value) text += (text.empty() ? "" : " ") + path.string();
    return text;
  }
  template <class Value>
  std::string operator()(const std::vector<Value>* value) const {
    return fmt::format("{}", fmt::join(*value, " "));
  }
  std::string operator()(const Choice& choice) const { return choice.names[choice.get()]; }
};

}  // namespace

const void* Field::address() const {
  return std::visit(
      [](const auto& value) -> const void* {
        if constexpr (std::is_same_v<decltype(value), const Choice&>) {
          return value.address;
        } else {
          return value;
        }
      },
      target);
}

std::string Field::display_name() const {
  return role != FieldRole::kPositional ? "--" + name : name.empty() ? value_name : name;
}

bool Field::is_word() const {
  const auto* const number = std::get_if<double*>(&target);
  return number != nullptr && !word.first.empty() && **number == word.second;
}

std::string Field::value_text() const { return is_word() ? word.first : std::visit(ValueText{}, target); }

Field& FieldList::add(std::string name, FieldTarget target, std::string value_name, std::string help) {
  return fields_.emplace_back(Field{.name = std::move(name),
                                    .target = std::move(target),
                                    .value_name = std::move(value_name),
                                    .help = std::move(help),
                                    .group = group_,
                                    .scope = scope_});
}

Field& FieldList::add_positional(FieldTarget target, std::string value_name, std::string help) {
  Field& field = add("", std::move(target), std::move(value_name), std::move(help));
  field.role = FieldRole::kPositional;
  return field;
}

Field* FieldList::find(std::string_view name) {
  for (Field& field : fields_) {
    if (field.role != FieldRole::kPositional && (field.name == name || (!name.empty() && field.alias == name))) {
      return &field;
    }
  }
  return nullptr;
}

std::list<Field>::iterator FieldList::at(const void* address) {
  const auto found = std::ranges::find_if(fields_, [&](const Field& field) { return field.address() == address; });
  check(found != fields_.end(), "the value has a field");
  return found;
}

Faults FieldList::range_faults() const {
  Faults faults;
  for (const Field& field : fields_) {
    if (!field.range) continue;
    faults.need_between({field.name}, *std::get<std::int64_t*>(field.target), field.range->first, field.range->second);
  }
  return faults;
}

}  // namespace teratron
