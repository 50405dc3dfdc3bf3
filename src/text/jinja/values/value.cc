#include "jinja/values/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "jinja/values/byte_budget.h"
#include "jinja/values/value_set.h"

namespace teratron::jinja {
namespace {

constexpr int kDeepest = 200;
constexpr std::size_t kMostValues = std::size_t{1} << 22;

void add_to(Extent& all, const Value& held) {
  const Extent extent = held.extent();
  all.levels = std::max(all.levels, extent.levels + 1);
  all.values += extent.values;
}

Extent checked(const Extent& extent) {
  if (extent.levels > kDeepest) fail("values are more than {} within each other", kDeepest);
  if (extent.values > kMostValues) fail("it makes a value of more than {} others", kMostValues);
  return extent;
}

bool equal_items(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) { return equal(x, y); });
}

// Compares views as sets, as Python does; a view of a dictionary's values equals none but itself.
bool equal_views(const Sequence& a, const Sequence& b) {
  if (a.name == "dict_values" || b.name == "dict_values" || a.items.size() != b.items.size()) return false;
  ValueSet others;
  for (const Value& other : b.items) others.insert(&other);
  return std::ranges::all_of(a.items, [&](const Value& item) { return others.contains(&item); });
}

bool equal_dictionaries(const Dictionary& a, const Dictionary& b) {
  if (a.items.size() != b.items.size()) return false;
  ValueMap others;
  for (const auto& [key, other] : b.items) others.emplace(&key, &other);
  return std::ranges::all_of(a.items, [&](const auto& item) {
    const auto found = others.find(&item.first);
    return found != others.end() && equal(item.second, *found->second);
  });
}

Value from_json_within(const nlohmann::ordered_json& json, int depth) {
  if (depth > kDeepest) fail("a message has lists within lists, {} deep", depth);
  switch (json.type()) {
    case nlohmann::ordered_json::value_t::null: return None{};
    case nlohmann::ordered_json::value_t::boolean: return json.get<bool>();
    case nlohmann::ordered_json::value_t::number_float: return json.get<double>();
    case nlohmann::ordered_json::value_t::number_integer: return json.get<std::int64_t>();
    case nlohmann::ordered_json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(INT64_MAX)) fail("the number {} is above 2^63 - 1", number);
      return static_cast<std::int64_t>(number);
    }
    case nlohmann::ordered_json::value_t::string: return Value::text(json.get<std::string>());
    case nlohmann::ordered_json::value_t::array: {
      Values items;
      for (const auto& item : json) items.push_back(from_json_within(item, depth + 1));
      return Value::list(std::move(items));
    }
    case nlohmann::ordered_json::value_t::object: {
      Dictionary dictionary;
      for (const auto& [key, item] : json.items()) {
        dictionary.items.emplace_back(Value::text(key), from_json_within(item, depth + 1));
      }
      return Value::dictionary(std::move(dictionary));
    }
    default: fail("a value of JSON that Python has not");
  }
}

}  // namespace

bool LoopItems::has(std::size_t index) {
  while (found.size() <= index && source->taken < source->items.size()) {
    const Value& item = source->items[source->taken++];
    if (!passes || passes(item)) found.push_back(item);
  }
  return index < found.size();
}

std::size_t LoopItems::count() {
  has(source->items.size());
  return found.size();
}

void append(std::string& text, std::string_view more) {
  if (more.size() > kMostBytes - std::min(text.size(), kMostBytes)) {
    fail("it makes a text of more than {} bytes", kMostBytes);
  }
  spend(more.size());
  text += more;
}

void require_elements(std::size_t count) {
  if (count > kMostElements) fail("it makes a list of more than {} elements", kMostElements);
}

Extent extent_around(const Values& items) {
  Extent all;
  for (const Value& item : items) add_to(all, item);
  return checked(all);
}

void require_hashable(const Value& value) {
  const Sequence* const list = value.sequence();
  if (value.dictionary() != nullptr || (list != nullptr && list->kind != Sequence::Kind::kTuple)) {
    fail("unhashable type: '{}'", type_name(value));
  }
  if (list == nullptr) return;
  for (const Value& one : list->items) require_hashable(one);
}

const Value* Dictionary::find(const Value& key) const {
  const auto found = std::ranges::find_if(items, [&](const auto& item) { return equal(item.first, key); });
  return found == items.end() ? nullptr : &found->second;
}

const Value* Dictionary::find(std::string_view key) const {
  const auto found = std::ranges::find_if(
      items, [&](const auto& item) { return item.first.text() != nullptr && item.first.text()->bytes == key; });
  spend(static_cast<std::size_t>(found - items.begin()) * sizeof(Value));
  return found == items.end() ? nullptr : &found->second;
}

void Dictionary::set(Value key, Value value) {
  require_hashable(key);
  for (auto& [known, there] : items) {
    if (!equal(known, key)) continue;
    there = std::move(value);
    return;
  }
  items.emplace_back(std::move(key), std::move(value));
}

Value Value::text(std::string bytes, bool safe) {
  if (bytes.size() > kMostBytes) fail("it makes a text of more than {} bytes", kMostBytes);
  spend(sizeof(Text) + bytes.size());
  return std::make_shared<const Text>(std::move(bytes), safe);
}

Value Value::list(Values items, Sequence::Kind kind, std::string name) {
  require_elements(items.size());
  spend(sizeof(Sequence) + items.size() * sizeof(Value));
  const Extent extent = extent_around(items);
  return std::make_shared<const Sequence>(
      Sequence{.kind = kind, .items = std::move(items), .name = std::move(name), .extent = extent});
}

Value Value::dictionary(Dictionary made) {
  spend(sizeof(Dictionary) + made.items.size() * sizeof(made.items[0]));
  Extent all;
  for (const auto& [key, item] : made.items) {
    add_to(all, key);
    add_to(all, item);
  }
  made.extent = checked(all);
  return std::make_shared<const Dictionary>(std::move(made));
}

Value Value::function(std::string name, Function call, const Value& self) {
  Extent extent;
  add_to(extent, self);
  return std::make_shared<const Callable>(Callable{std::move(name), std::move(call), checked(extent)});
}

Namespace* Value::name_space() const {
  const auto* held = get<std::shared_ptr<Namespace>>();
  return held == nullptr ? nullptr : held->get();
}

std::int64_t Value::integer() const {
  const bool* flag = get<bool>();
  return flag != nullptr ? static_cast<std::int64_t>(*flag) : *get<std::int64_t>();
}

double Value::number() const {
  const double* real = get<double>();
  return real != nullptr ? *real : static_cast<double>(integer());
}

bool Value::is_same(const Value& other) const {
  if (held_.index() != other.held_.index()) return false;
  return std::visit(
      [&]<typename T>(const T& mine) {
        const T& its = std::get<T>(other.held_);
        if constexpr (std::is_same_v<T, None>) {
          return true;
        } else if constexpr (std::is_same_v<T, Undefined>) {
          return mine.why == its.why;
        } else {
          return mine == its;
        }
      },
      held_);
}

Extent Value::extent() const {
  if (const Sequence* held = sequence()) return held->extent;
  if (const Dictionary* held = dictionary()) return held->extent;
  if (const Callable* held = callable()) return held->extent;
  if (const Loop* held = loop()) return held->items->source->extent;
  return {};
}

void require_defined(const Value& value) {
  const auto* undefined = value.get<Undefined>();
  if (undefined == nullptr) return;
  fail("{}", undefined->why == nullptr ? "a value is undefined" : *undefined->why);
}

const Callable& require_callable(const Value& value) {
  require_defined(value);
  if (value.callable() == nullptr) fail("'{}' object is not callable", type_name(value));
  return *value.callable();
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is_number()) return value.number() != 0;
  if (const Text* text = value.text()) return !text->bytes.empty();
  if (const Sequence* sequence = value.sequence()) {
    return sequence->kind == Sequence::Kind::kIterator || !sequence->items.empty();
  }
  if (const Dictionary* dictionary = value.dictionary()) return !dictionary->items.empty();
  return true;
}

bool equal(const Value& a, const Value& b) {
  spend(sizeof(Value));
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  }
  if (const Text* x = a.text(), *y = b.text(); x != nullptr && y != nullptr) {
    if (x->bytes.size() == y->bytes.size()) spend(x->bytes.size());
    return x->bytes == y->bytes;
  }
  if (a.is_undefined() && b.is_undefined()) return true;
  if (const Sequence* x = a.sequence(), *y = b.sequence(); x != nullptr && y != nullptr) {
    if (x == y || x->kind != y->kind || x->kind == Sequence::Kind::kIterator) return x == y;
    return x->kind == Sequence::Kind::kView ? equal_views(*x, *y) : equal_items(x->items, y->items);
  }
  if (const Dictionary* x = a.dictionary(), *y = b.dictionary(); x != nullptr && y != nullptr) {
    return equal_dictionaries(*x, *y);
  }
  return a.is_same(b);
}

bool less(const Value& a, const Value& b) {
  spend(sizeof(Value));
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.integer() < b.integer() : a.number() < b.number();
  }
  if (const Text* x = a.text(), *y = b.text(); x != nullptr && y != nullptr) {
    spend(std::min(x->bytes.size(), y->bytes.size()));
    return x->bytes < y->bytes;  // the order of characters
  }
  const Sequence *x = a.sequence(), *y = b.sequence();
  using Kind = Sequence::Kind;
  if (x != nullptr && y != nullptr && x->kind == y->kind && (x->kind == Kind::kList || x->kind == Kind::kTuple)) {
    const auto [at, other] =
        std::ranges::mismatch(x->items, y->items, [](const Value& v, const Value& w) { return equal(v, w); });
    if (other == y->items.end()) return false;
    return at == x->items.end() || less(*at, *other);
  }
  fail("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

std::string type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.get<bool>() != nullptr) return "bool";
  if (value.get<std::int64_t>() != nullptr) return "int";
  if (value.get<double>() != nullptr) return "float";
  if (value.text() != nullptr) return value.text()->safe ? "Markup" : "str";
  if (value.sequence() != nullptr) return value.sequence()->name;
  if (value.dictionary() != nullptr) return "dict";
  if (value.name_space() != nullptr) return "Namespace";
  return value.loop() != nullptr ? "LoopContext" : "function";
}

Values elements(const Value& value) {
  if (value.is_undefined()) return {};
  if (const Sequence* sequence = value.sequence()) {
    spend(sequence->items.size() * sizeof(Value));
    if (sequence->kind != Sequence::Kind::kIterator) return sequence->items;
    Values rest(sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->taken), sequence->items.end());
    sequence->taken = sequence->items.size();
    return rest;
  }
  Values all;
  if (const Dictionary* dictionary = value.dictionary()) {
    for (const auto& [key, item] : dictionary->items) all.push_back(key);
    return all;
  }
  if (const Text* text = value.text()) {
    require_elements(text->characters);
    for (std::string_view rest = text->bytes; !rest.empty();) {
      const std::size_t bytes = decode_utf8(rest).length;
      all.push_back(Value::text(std::string(rest.substr(0, bytes)), text->safe));
      rest.remove_prefix(bytes);
    }
    return all;
  }
  fail("'{}' object is not iterable", type_name(value));
}

std::shared_ptr<const Sequence> iterator_of(const Value& value) {
  const auto* held = value.get<std::shared_ptr<const Sequence>>();
  if (held != nullptr && (*held)->kind == Sequence::Kind::kIterator) return *held;
  return *Value::iterator(elements(value)).get<std::shared_ptr<const Sequence>>();
}

std::int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (const Text* text = value.text()) return static_cast<std::int64_t>(text->characters);
  if (const Dictionary* dictionary = value.dictionary()) return std::ssize(dictionary->items);
  const Sequence* sequence = value.sequence();
  if (sequence != nullptr && sequence->kind != Sequence::Kind::kIterator) return std::ssize(sequence->items);
  if (const Loop* loop = value.loop()) return static_cast<std::int64_t>(loop->items->count());
  fail("object of type '{}' has no len()", type_name(value));
}

Value from_json(const nlohmann::ordered_json& json) { return from_json_within(json, 0); }

}  // namespace teratron::jinja
