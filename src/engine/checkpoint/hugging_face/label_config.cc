// Names of labels in a config.json.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"
#include "model/label_names.h"

namespace teratron {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

// Numbers and words without quotes are names, too.
std::string text_of_name(const Json& name) { return name.is_string() ? name.get<std::string>() : name.dump(); }

Names names_by_row(const JsonFields& fields, Names& unsupported) {
  Names names;
  if (!fields.has("id2label")) return names;
  const Json& labels = fields.object("id2label");
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto found = labels.find(fmt::format("{}", row));
    if (found == labels.end()) {
      unsupported.push_back(fmt::format("id2label has {} names and none of {}", labels.size(), row));
      return {};
    }
    names.push_back(text_of_name(*found));
  }
  return names;
}

// Names of label2id, by row; none where they only count, or where it is no inverse of a list.
Names names_of_inverse(const JsonFields& fields, std::size_t count) {
  if (!fields.has("label2id") || fields.object("label2id").size() != count) return {};
  Names names(count);
  for (const auto& [name, row] : fields.object("label2id").items()) {
    const bool is_row = row.is_number_unsigned() && row.get<std::uint64_t>() < count;
    if (!is_row || !names[row.get<std::size_t>()].empty()) return {};
    names[row.get<std::size_t>()] = name;
  }
  return std::ranges::count(names, "") > 0 || are_numbers(names) ? Names() : names;
}

bool counts_only(const Json& labels_to_rows) {
  return std::ranges::all_of(labels_to_rows.items(), [](const auto& item) {
    return item.value().is_number_unsigned() &&
           (item.key() == default_label_name(item.value().template get<std::size_t>()) ||
            item.key() == item.value().dump());
  });
}

// Empty where label2id agrees with the names, or says nothing.
std::string contradiction(const JsonFields& fields, const Names& names) {
  if (!fields.has("label2id") || counts_only(fields.object("label2id"))) return "";
  const Json& rows = fields.object("label2id");
  std::multimap<std::string, Json::const_iterator> by_label;
  for (auto item = rows.begin(); item != rows.end(); ++item) by_label.emplace(plain_label(item.key()), item);
  for (std::size_t row = 0; row < names.size(); ++row) {
    const auto [first, last] = by_label.equal_range(plain_label(names[row]));
    if (first == last) {
      return fmt::format("id2label names row {} '{}', which label2id does not have", row, names[row]);
    }
    const auto other = std::find_if(first, last, [&](const auto& found) { return found.second.value() != row; });
    if (other == last) continue;
    return fmt::format("id2label names row {} '{}', and label2id says that '{}' is {}", row, names[row],
                       other->second.key(), other->second.value().dump());
  }
  return "";
}

std::string repeated_name(const Names& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[plain_label(name)];
  const auto twice = std::ranges::find_if(names, [&](const auto& name) { return counts[plain_label(name)] > 1; });
  return twice == names.end() ? "" : *twice;
}

}  // namespace

// Labels have names in id2label, and in label2id, its inverse. Fills in num_labels and label_names of a head that tells
// labels. Names that only count (LABEL_0, ..), which transformers writes for labels without names, are left out. Faults
// are added to `unsupported`, a phrase each: rows without a name, names that occur twice, a label2id that differs.
void read_label_names(const JsonFields& fields, ModelConfig& model, Phrases& unsupported) {
  model.num_labels = fields.has("num_labels") ? fields.integer("num_labels", 1, kLargestSize) : 2;
  Names names = names_by_row(fields, unsupported);
  if (!names.empty()) model.num_labels = std::ssize(names);
  if (model.num_labels == 1) return;  // a number, whose name says nothing
  if (names.empty() || are_numbers(names)) {
    model.label_names = names_of_inverse(fields, static_cast<std::size_t>(model.num_labels));
    return;
  }
  if (const std::string twice = repeated_name(names); !twice.empty()) {
    unsupported.push_back(fmt::format("id2label has the name '{}' twice", twice));
  } else if (const std::string other = contradiction(fields, names); !other.empty()) {
    unsupported.push_back(other);
  }
  model.label_names = std::move(names);
}

// Writes both keys; labels without names are LABEL_0, ..
void write_label_names(const ModelConfig& model, nlohmann::ordered_json& json) {
  if (model.num_labels == 1) json["problem_type"] = "regression";
  using Ordered = nlohmann::ordered_json;
  // An ordered object compares a key with all before it, so names, which are all different, are appended to its list.
  Ordered::object_t names, rows;
  for (std::size_t row = 0; row < static_cast<std::size_t>(model.num_labels); ++row) {
    const std::string name = model.label_names.empty() ? default_label_name(row) : model.label_names[row];
    names.emplace_back(fmt::format("{}", row), name);
    rows.emplace_back(name, row);
  }
  json["id2label"] = std::move(names);
  json["label2id"] = std::move(rows);
}

}  // namespace teratron
