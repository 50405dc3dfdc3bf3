#include "jinja/values/access.h"

#include <algorithm>

#include "base/ascii.h"
#include "jinja/values/byte_budget.h"
#include "jinja/values/methods.h"
#include "jinja/values/printing.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

Value missing(const Value& value, const std::string& what) {
  if (value.is_none()) return Value::undefined(fmt::format("'None' has no attribute '{}'", what));
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(value), what));
}

// loop.changed(): whether the arguments differ from those of the call before.
Value changed(const Loop& loop, const Arguments& arguments) {
  const Value now = Value::tuple(arguments.positional);
  if (equal(*loop.last_changed, now)) return false;
  *loop.last_changed = now;
  return true;
}

Value previous_item(const Loop& loop) {
  if (loop.index0 == 0) return Value::undefined("there is no previous item");
  return loop.items->found[loop.index0 - 1];
}

Value next_item(const Loop& loop) {
  if (!loop.items->has(loop.index0 + 1)) return Value::undefined("there is no next item");
  return loop.items->found[loop.index0 + 1];
}

std::optional<Value> attribute_of_loop(const std::shared_ptr<const Loop>& loop, const std::string& name) {
  const auto at = static_cast<std::int64_t>(loop->index0);
  const auto count = [&] { return static_cast<std::int64_t>(loop->items->count()); };
  if (name == "index0") return at;
  if (name == "index") return at + 1;
  if (name == "revindex0") return count() - at - 1;
  if (name == "revindex") return count() - at;
  if (name == "first") return at == 0;
  if (name == "last") return !loop->items->has(loop->index0 + 1);
  if (name == "length") return count();
  if (name == "depth0") return std::int64_t{0};  // recursive loops alone are deeper
  if (name == "depth") return std::int64_t{1};
  if (name == "previtem") return previous_item(*loop);
  if (name == "nextitem") return next_item(*loop);
  if (name == "cycle") {
    const auto cycle = [loop](Arguments& arguments) {
      if (arguments.positional.empty()) fail("no items for cycling given");
      return arguments.positional[loop->index0 % arguments.positional.size()];
    };
    return Value::function("cycle", cycle, loop);
  }
  if (name == "changed") {
    return Value::function(
        "changed", [loop](Arguments& arguments) { return changed(*loop, arguments); }, loop);
  }
  return std::nullopt;
}

// An attribute that the object itself has in Python.
std::optional<Value> own_attribute(const Value& value, const std::string& name) {
  if (const auto* loop = value.get<std::shared_ptr<const Loop>>()) return attribute_of_loop(*loop, name);
  if (const Namespace* space = value.name_space()) {
    const auto found = space->attributes.find(name);
    return found == space->attributes.end() ? std::nullopt : std::optional(found->second);
  }
  if (value.callable() != nullptr) fail("'{}' of a function is not supported", name);
  return find_method(value, name);
}

std::optional<Value> element_at(const Value& value, std::int64_t index) {
  if (const Text* text = value.text()) {
    const auto count = static_cast<std::int64_t>(text->characters);
    if (index < 0) index += count;
    if (index < 0 || index >= count) return std::nullopt;
    const auto at = static_cast<std::size_t>(index);
    return Value::text(std::string(text->part(at, at + 1)), text->safe);
  }
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind > Sequence::Kind::kRange) return std::nullopt;
  if (index < 0) index += std::ssize(sequence->items);
  if (index < 0 || index >= std::ssize(sequence->items)) return std::nullopt;
  return sequence->items[static_cast<std::size_t>(index)];
}

std::optional<Value> element_of(const Value& value, const Value& key) {
  if (const Dictionary* dictionary = value.dictionary()) {
    const Value* found = dictionary->find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  return key.is_integer() ? element_at(value, key.integer()) : std::nullopt;
}

// Elements of a slice, by their numbers.
struct Steps {
  std::int64_t first = 0, by = 1;
  std::size_t count = 0;

  std::size_t operator[](std::size_t i) const {
    return static_cast<std::size_t>(first + static_cast<std::int64_t>(i) * by);
  }
};

// Elements that a slice takes of `size` (Python's slice.indices).
Steps steps_of(std::int64_t size, const Value& begin, const Value& end, const Value& step) {
  for (const Value* part : {&begin, &end, &step}) {
    if (!part->is_none() && !part->is_integer()) fail("slice indices must be integers or None");
  }
  const std::int64_t by = step.is_none() ? 1 : step.integer();
  if (by == 0) fail("slice step cannot be zero");
  const std::int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& given, std::int64_t other) {
    if (given.is_none()) return other;
    const std::int64_t at = given.integer();
    return std::clamp(at < 0 && at >= -size - 1 ? at + size : at, lowest, highest);
  };
  const std::int64_t first = bound(begin, by > 0 ? lowest : highest), last = bound(end, by > 0 ? highest : lowest);
  if (by > 0 ? first >= last : first <= last) return {first, by, 0};
  return {first, by, static_cast<std::size_t>((last - first + (by > 0 ? -1 : 1)) / by + 1)};
}

}  // namespace

Value attribute_of(const Value& value, const std::string& name) {
  require_defined(value);
  if (std::optional<Value> own = own_attribute(value, name)) return *std::move(own);
  const Dictionary* dictionary = value.dictionary();
  const Value* item = dictionary == nullptr ? nullptr : dictionary->find(name);
  if (item != nullptr) return *item;
  return missing(value, name);
}

Value item_of(const Value& value, const Value& key) {
  require_defined(value);
  if (std::optional<Value> element = element_of(value, key)) return *std::move(element);
  const Text* name = key.text();
  if (name == nullptr) {
    return Value::undefined(fmt::format("{} has no element {}", type_name(value) + " object", repr(key)));
  }
  if (std::optional<Value> own = own_attribute(value, name->bytes)) return *std::move(own);
  return missing(value, name->bytes);
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step) {
  require_defined(value);
  if (const Text* text = value.text()) {
    const Steps steps = steps_of(static_cast<std::int64_t>(text->characters), begin, end, step);
    if (steps.by == 1) {
      return Value::text(std::string(text->part(steps[0], steps[0] + steps.count)), text->safe);
    }
    spend(steps.count * text->most_steps());
    std::string out;
    for (std::size_t i = 0; i < steps.count; ++i) out += text->part(steps[i], steps[i] + 1);
    return Value::text(std::move(out), text->safe);
  }
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind > Sequence::Kind::kRange) {
    fail("'{}' object is not subscriptable", type_name(value));  // Jinja leaves slices to Python
  }
  const Steps steps = steps_of(std::ssize(sequence->items), begin, end, step);
  Values items;
  items.reserve(steps.count);
  for (std::size_t i = 0; i < steps.count; ++i) items.push_back(sequence->items[steps[i]]);
  return Value::list(std::move(items), sequence->kind, sequence->name);
}

Value path_of(const Value& value, const Value& path, const Value* other) {
  const auto part_of = [&](const Value& whole, const Value& key) {
    Value part = item_of(whole, key);
    return other != nullptr && part.is_undefined() ? *other : part;
  };
  if (path.is_none()) return value;
  if (path.is_integer()) return part_of(value, path);
  const Text* text = path.text();
  if (text == nullptr) fail("the name of an attribute is a {}", type_name(path));
  Value at = value;
  for (const std::string_view part : split(text->bytes, ".", -1, false)) {
    const bool is_number = !part.empty() && part.size() < 10 && std::ranges::all_of(part, is_ascii_digit);
    at = part_of(at, is_number ? Value(static_cast<std::int64_t>(std::stoi(std::string(part))))
                               : Value::text(std::string(part)));
  }
  return at;
}

}  // namespace teratron::jinja
