// Filters of lists.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "jinja/functions/filters.h"
#include "jinja/functions/tests.h"
#include "jinja/renderer.h"
#include "jinja/values/access.h"
#include "jinja/values/arguments.h"
#include "jinja/values/operators.h"
#include "jinja/values/printing.h"
#include "jinja/values/python_text.h"
#include "jinja/values/value_set.h"

namespace teratron::jinja {
namespace {

// What an item is compared by: an attribute, or itself; a text in lower case unless case counts.
Value key_of(const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = attribute.is_undefined() || attribute.is_none() ? item : path_of(item, attribute);
  if (const double* number = key.get<double>(); number != nullptr && std::isnan(*number)) fail("nan has no order");
  return case_sensitive || key.text() == nullptr ? key : Value::text(lower(key.text()->bytes));
}

Values sorted(const Values& items, const Value& attribute, bool case_sensitive, bool reverse) {
  if (attribute.text() != nullptr && attribute.text()->bytes.find(',') != std::string::npos) {
    fail("sorting by several attributes is not supported");
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) keyed.emplace_back(key_of(item, attribute, case_sensitive), item);
  std::ranges::stable_sort(
      keyed, [&](const auto& a, const auto& b) { return reverse ? less(b.first, a.first) : less(a.first, b.first); });
  Values all;
  for (auto& [key, item] : keyed) all.push_back(std::move(item));
  return all;
}

Value filter_list(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("list", arguments, {"value"});
  return Value::list(elements(bound[0]));
}

Value filter_first(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("first", arguments, {"seq"});
  const Sequence* sequence = bound[0].sequence();
  if (sequence != nullptr && sequence->kind == Sequence::Kind::kIterator) {
    if (sequence->taken < sequence->items.size()) return sequence->items[sequence->taken++];
    return Value::undefined("No first item, sequence was empty.");
  }
  Values all = elements(bound[0]);
  return all.empty() ? Value::undefined("No first item, sequence was empty.") : all.front();
}

void require_reversible(const Value& value) {
  const Sequence* sequence = value.sequence();
  if (sequence != nullptr && sequence->kind == Sequence::Kind::kIterator) fail("'generator' object is not reversible");
}

Value filter_last(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("last", arguments, {"seq"});
  require_reversible(bound[0]);
  Values all = elements(bound[0]);
  return all.empty() ? Value::undefined("No last item, sequence was empty.") : all.back();
}

Value filter_reverse(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("reverse", arguments, {"value"});
  if (const Text* text = bound[0].text()) {
    std::string out;
    for (std::string_view rest = text->bytes; !rest.empty();) {
      const std::size_t begin = last_character(rest);
      out += rest.substr(begin);
      rest = rest.substr(0, begin);
    }
    return Value::text(std::move(out), text->safe);
  }
  Values all = elements(bound[0]);
  std::ranges::reverse(all);
  const Sequence* sequence = bound[0].sequence();
  const bool is_iterator = sequence != nullptr && sequence->kind == Sequence::Kind::kIterator;
  return is_iterator ? Value::list(std::move(all)) : Value::iterator(std::move(all));  // as Jinja makes them
}

Value filter_join(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("join", arguments, {"value", "d", "attribute"});
  const std::string between = bound.has(1) ? text_of(bound[1]) : "";
  const bool by_attribute = bound.has(2) && !bound[2].is_none();
  std::string out;
  bool first = true;
  for (const Value& item : elements(bound[0])) {
    if (!std::exchange(first, false)) append(out, between);
    append_text_of(by_attribute ? path_of(item, bound[2]) : item, out);
  }
  return Value::text(std::move(out));
}

Value filter_items(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("items", arguments, {"value"});
  Values all;
  if (bound[0].is_undefined()) return Value::iterator({});
  if (bound[0].dictionary() == nullptr) fail("Can only get item pairs from a mapping.");
  for (const auto& [key, item] : bound[0].dictionary()->items) all.push_back(Value::tuple({key, item}));
  return Value::iterator(std::move(all));
}

Value dictsort(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"value", "case_sensitive", "by", "reverse"});
  require_defined(bound[0]);
  if (bound[0].dictionary() == nullptr) fail("'{}' object has no attribute 'items'", type_name(bound[0]));
  const std::string by = bound.has(2) ? text_of(bound[2]) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  Values pairs;
  for (const auto& [key, item] : bound[0].dictionary()->items) pairs.push_back(Value::tuple({key, item}));
  const Value place = std::int64_t{by == "key" ? 0 : 1};
  return Value::list(sorted(pairs, place, bound.flag_or(1, false), bound.flag_or(3, false)));
}

Value filter_sort(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("sort", arguments, {"value", "reverse", "case_sensitive", "attribute"});
  return Value::list(sorted(elements(bound[0]), bound[3], bound.flag_or(2, false), bound.flag_or(1, false)));
}

Value unique(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("unique", arguments, {"value", "case_sensitive", "attribute"});
  const Values all = elements(bound[0]);
  Values kept, keys;
  keys.reserve(all.size());  // `known` points to them
  ValueSet known;
  for (const Value& item : all) {
    const Value& key = keys.emplace_back(key_of(item, bound[2], bound.flag_or(1, false)));
    require_hashable(key);
    if (known.insert(&key).second) kept.push_back(item);
  }
  return Value::iterator(std::move(kept));
}

template <bool kMost>
Value extreme(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound(kMost ? "max" : "min", arguments, {"value", "case_sensitive", "attribute"});
  const Values all = elements(bound[0]);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key = [&](const Value& item) { return key_of(item, bound[2], bound.flag_or(1, false)); };
  const Value* best = all.data();
  for (const Value& item : all) {
    if (kMost ? less(key(*best), key(item)) : less(key(item), key(*best))) best = &item;
  }
  return *best;
}

Value filter_sum(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("sum", arguments, {"iterable", "attribute", "start"});
  Value total = bound.has(2) ? bound[2] : Value(std::int64_t{0});
  const bool by_attribute = bound.has(1) && !bound[1].is_none();
  for (const Value& item : elements(bound[0])) {
    total = computed(Operator::kAdd, total, by_attribute ? path_of(item, bound[1]) : item);
  }
  return total;
}

// The elements for map and select, to which a false value has none.
Values elements_if_true(const Value& value) { return is_true(value) ? elements(value) : Values(); }

Value map_by_attribute(const Values& items, const Arguments& arguments) {
  Values all;
  const Value *path = nullptr, *other = nullptr;
  for (const auto& [name, value] : arguments.named) (name == "attribute" ? path : other) = &value;
  for (const auto& [name, value] : arguments.named) {
    if (name != "attribute" && name != "default") fail("Unexpected keyword argument '{}'", name);
  }
  if (path == nullptr || arguments.positional.size() != 1) fail("map requires a filter argument");
  if (other != nullptr && other->is_none()) other = nullptr;  // as in Jinja
  for (const Value& item : items) all.push_back(path_of(item, *path, other));
  return Value::iterator(std::move(all));
}

Value filter_map(Renderer& renderer, Arguments& arguments) {
  if (arguments.positional.empty()) fail("map has nothing to map");
  const Values items = elements_if_true(arguments.positional[0]);
  if (arguments.positional.size() == 1) return map_by_attribute(items, arguments);
  const Text* name = arguments.positional[1].text();
  const Filter filter = name == nullptr ? nullptr : find_filter(name->bytes);
  if (filter == nullptr)
    fail("map takes a filter, and '{}' is unknown or not supported", text_of(arguments.positional[1]));
  // Counts as a call, since map may map by map.
  const Callable by_filter{.name = name->bytes, .call = [&](Arguments& its) { return filter(renderer, its); }};
  Values all;
  for (const Value& item : items) {
    Arguments its{.positional = {item}, .named = arguments.named};
    its.positional.insert(its.positional.end(), arguments.positional.begin() + 2, arguments.positional.end());
    all.push_back(renderer.call(by_filter, its));
  }
  return Value::iterator(std::move(all));
}

// select, reject, and by an attribute selectattr, rejectattr.
template <bool kByAttribute, bool kKeeps>
Value selected(Renderer& /*renderer*/, Arguments& arguments) {
  constexpr std::size_t kTestAt = kByAttribute ? 2 : 1;
  if (!arguments.named.empty()) fail("select and reject take no arguments by name");
  if (arguments.positional.size() < kTestAt) fail("Missing parameter for attribute name");
  Test test = nullptr;
  if (arguments.positional.size() > kTestAt) {
    const Text* name = arguments.positional[kTestAt].text();
    test = name == nullptr ? nullptr : find_test(name->bytes);
    if (test == nullptr) fail("the test '{}' is unknown, or not supported", text_of(arguments.positional[kTestAt]));
  }
  Values all;
  for (const Value& item : elements_if_true(arguments.positional[0])) {
    Values its{kByAttribute ? path_of(item, arguments.positional[1]) : item};
    if (test != nullptr) {
      its.insert(its.end(), arguments.positional.begin() + kTestAt + 1, arguments.positional.end());
    }
    if ((test != nullptr ? test(its) : is_true(its[0])) == kKeeps) all.push_back(item);
  }
  return Value::iterator(std::move(all));
}

constexpr std::array kSequenceFilters = {NamedFilter{"list", filter_list},
                                         NamedFilter{"first", filter_first},
                                         NamedFilter{"last", filter_last},
                                         NamedFilter{"reverse", filter_reverse},
                                         NamedFilter{"join", filter_join},
                                         NamedFilter{"items", filter_items},
                                         NamedFilter{"dictsort", dictsort},
                                         NamedFilter{"sort", filter_sort},
                                         NamedFilter{"unique", unique},
                                         NamedFilter{"min", extreme<false>},
                                         NamedFilter{"max", extreme<true>},
                                         NamedFilter{"sum", filter_sum},
                                         NamedFilter{"map", filter_map},
                                         NamedFilter{"select", selected<false, true>},
                                         NamedFilter{"reject", selected<false, false>},
                                         NamedFilter{"selectattr", selected<true, true>},
                                         NamedFilter{"rejectattr", selected<true, false>}};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto found = std::ranges::find(kSequenceFilters, name, &NamedFilter::name);
  return found == kSequenceFilters.end() ? nullptr : found->filter;
}

}  // namespace teratron::jinja
