#include "jinja/values/methods.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/ascii.h"
#include "base/utf8.h"
#include "jinja/values/arguments.h"
#include "jinja/values/printing.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

using Method = Value (*)(const Value& self, Arguments& arguments);
struct NamedMethod {
  std::string_view name;
  Method call;
};

const std::string& text_argument(std::string_view method, const Value& value) {
  const Text* text = value.text();
  if (text == nullptr) fail("{}() takes a str, not a {}", method, type_name(value));
  return text->bytes;
}

Value texts(const Pieces& pieces) {
  Values items;
  for (const std::string_view piece : pieces) items.push_back(Value::text(std::string(piece)));
  return Value::list(std::move(items));
}

template <bool kLeft, bool kRight>
Value strip(const Value& self, Arguments& arguments) {
  const Bound bound("strip", arguments, {"chars"}, 0);
  std::optional<std::string_view> characters;
  if (bound.has(0) && !bound[0].is_none()) characters = text_argument("strip", bound[0]);
  return Value::text(std::string(stripped(self.text()->bytes, characters, kLeft, kRight)));
}

template <bool kFromRight>
Value split_text(const Value& self, Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"}, 0);
  std::optional<std::string_view> separator;
  if (bound.has(0) && !bound[0].is_none()) separator = text_argument("split", bound[0]);
  return texts(split(self.text()->bytes, separator, bound.integer_or(1, -1), kFromRight));
}

Value splitlines(const Value& self, Arguments& arguments) {
  const Bound bound("splitlines", arguments, {"keepends"}, 0);
  return texts(split_lines(self.text()->bytes, bound.flag_or(0, false)));
}

template <std::string (*kChange)(std::string_view)>
Value changed_text(const Value& self, Arguments& arguments) {
  const Bound none("a method of str", arguments, {}, 0);
  return Value::text(kChange(self.text()->bytes));
}

Value replace(const Value& self, Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  return Value::text(replaced(self.text()->bytes, text_argument("replace", bound[0]),
                              text_argument("replace", bound[1]), bound.integer_or(2, -1)));
}

template <bool kAtBegin>
Value has_end(const Value& self, Arguments& arguments) {
  const char* method = kAtBegin ? "startswith" : "endswith";
  const Bound bound(method, arguments, {"affix"}, 1);
  const std::string& text = self.text()->bytes;
  const auto has = [&](const Value& affix) {
    const std::string& bytes = text_argument(method, affix);
    return kAtBegin ? text.starts_with(bytes) : text.ends_with(bytes);
  };
  const Sequence* several = bound[0].sequence();
  if (several == nullptr || several->kind != Sequence::Kind::kTuple) return has(bound[0]);
  return std::ranges::any_of(several->items, has);
}

template <bool kFromRight>
Value find(const Value& self, Arguments& arguments) {
  const Bound bound("find", arguments, {"sub"}, 1);
  const std::string &text = self.text()->bytes, &sub = text_argument("find", bound[0]);
  const std::size_t at = kFromRight ? find_last(text, sub) : find_first(text, sub);
  if (at == std::string::npos) return std::int64_t{-1};
  return static_cast<std::int64_t>(count_characters(std::string_view(text).substr(0, at)));
}

Value count_in_text(const Value& self, Arguments& arguments) {
  const Bound bound("count", arguments, {"sub"}, 1);
  const std::string& sub = text_argument("count", bound[0]);
  if (sub.empty()) return length(self) + 1;
  std::string_view rest = self.text()->bytes;
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = find_first(rest, sub)) != std::string_view::npos; ++count) {
    rest.remove_prefix(at + sub.size());
  }
  return count;
}

Value join(const Value& self, Arguments& arguments) {
  const Bound bound("join", arguments, {"iterable"}, 1);
  std::string out;
  bool first = true;
  for (const Value& item : elements(bound[0])) {
    if (!std::exchange(first, false)) append(out, self.text()->bytes);
    append(out, text_argument("join", item));
  }
  return Value::text(std::move(out));
}

// str.format() with fields {}, {0} and {name}; others are refused.
Value format(const Value& self, Arguments& arguments) {
  std::string out;
  std::string_view rest = self.text()->bytes;
  std::size_t next = 0;
  bool by_number = false;
  while (!rest.empty()) {
    const char c = rest[0];
    if ((c != '{' && c != '}') || (rest.size() > 1 && rest[1] == c)) {
      out += c;
      rest.remove_prefix(c == '{' || c == '}' ? 2 : 1);
      continue;
    }
    const std::size_t end = rest.find('}');
    if (c == '}' || end == std::string_view::npos) fail("Single '{}' encountered in format string", c);
    const std::string name(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (name.find_first_of(".[:!{") != std::string::npos) fail("format() of '{{{}}}' is not supported", name);
    const bool by_place = name.empty() || std::ranges::all_of(name, is_ascii_digit);
    if (by_place) {
      by_number = by_number || !name.empty();
      if (by_number && (name.empty() || next > 0)) fail("format() has fields with and without numbers");
      const std::size_t place = name.empty() ? next++ : name.size() < 6 ? std::stoul(name) : 1'000'000;
      if (place >= arguments.positional.size())
        fail("Replacement index {} out of range for positional args tuple", place);
      append(out, text_of(arguments.positional[place]));
    } else {
      const auto found = std::ranges::find(arguments.named, name, [](const auto& one) { return one.first; });
      if (found == arguments.named.end()) fail("format() has no argument '{}'", name);
      append(out, text_of(found->second));
    }
  }
  return Value::text(std::move(out));
}

template <bool kPrefix>
Value remove_affix(const Value& self, Arguments& arguments) {
  constexpr std::string_view kMethod = kPrefix ? "removeprefix" : "removesuffix";
  const Bound bound(kMethod, arguments, {"affix"}, 1);
  std::string_view text = self.text()->bytes;
  const std::string& affix = text_argument(kMethod, bound[0]);
  if (kPrefix && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!kPrefix && text.ends_with(affix)) text.remove_suffix(affix.size());
  return Value::text(std::string(text));
}

constexpr std::array kTextMethods = {NamedMethod{"strip", strip<true, true>},
                                     NamedMethod{"lstrip", strip<true, false>},
                                     NamedMethod{"rstrip", strip<false, true>},
                                     NamedMethod{"split", split_text<false>},
                                     NamedMethod{"rsplit", split_text<true>},
                                     NamedMethod{"splitlines", splitlines},
                                     NamedMethod{"upper", changed_text<upper>},
                                     NamedMethod{"lower", changed_text<lower>},
                                     NamedMethod{"capitalize", changed_text<capitalized>},
                                     NamedMethod{"title", changed_text<title>},
                                     NamedMethod{"replace", replace},
                                     NamedMethod{"startswith", has_end<true>},
                                     NamedMethod{"endswith", has_end<false>},
                                     NamedMethod{"find", find<false>},
                                     NamedMethod{"rfind", find<true>},
                                     NamedMethod{"count", count_in_text},
                                     NamedMethod{"join", join},
                                     NamedMethod{"format", format},
                                     NamedMethod{"removeprefix", remove_affix<true>},
                                     NamedMethod{"removesuffix", remove_affix<false>}};
constexpr std::array<std::string_view, 27> kOtherTextMethods = {
    "casefold",    "center",  "encode",     "expandtabs", "format_map",   "index",     "isalnum",
    "isalpha",     "isascii", "isdecimal",  "isdigit",    "isidentifier", "islower",   "isnumeric",
    "isprintable", "isspace", "istitle",    "isupper",    "ljust",        "maketrans", "partition",
    "rindex",      "rjust",   "rpartition", "swapcase",   "translate",    "zfill"};

Value get(const Value& self, Arguments& arguments) {
  const Bound bound("get", arguments, {"key", "default"}, 1);
  const Value* found = self.dictionary()->find(bound[0]);
  if (found != nullptr) return *found;
  return bound.has(1) ? bound[1] : None{};
}

template <bool kKeys, bool kItems>
Value view(const Value& self, Arguments& arguments) {
  const Bound none("a method of dict", arguments, {}, 0);
  Values all;
  for (const auto& [key, item] : self.dictionary()->items) {
    all.push_back(kKeys && kItems ? Value::tuple({key, item}) : kKeys ? key : item);
  }
  return Value::list(std::move(all), Sequence::Kind::kView,
                     kKeys && kItems ? "dict_items"
                     : kKeys         ? "dict_keys"
                                     : "dict_values");
}

Value copied(const Value& self, Arguments& /*arguments*/) { return self; }

constexpr std::array kDictionaryMethods = {NamedMethod{"get", get}, NamedMethod{"items", view<true, true>},
                                           NamedMethod{"keys", view<true, false>},
                                           NamedMethod{"values", view<false, true>}, NamedMethod{"copy", copied}};
constexpr std::array<std::string_view, 6> kOtherDictionaryMethods = {"clear",   "fromkeys",   "pop",
                                                                     "popitem", "setdefault", "update"};

Value count_in_list(const Value& self, Arguments& arguments) {
  const Bound bound("count", arguments, {"value"}, 1);
  return static_cast<std::int64_t>(
      std::ranges::count_if(self.sequence()->items, [&](const Value& item) { return equal(item, bound[0]); }));
}

Value index_in_list(const Value& self, Arguments& arguments) {
  const Bound bound("index", arguments, {"value"}, 1);
  const Values& items = self.sequence()->items;
  const auto found = std::ranges::find_if(items, [&](const Value& item) { return equal(item, bound[0]); });
  if (found == items.end()) fail("{} is not in list", repr(bound[0]));
  return static_cast<std::int64_t>(found - items.begin());
}

constexpr std::array kListMethods = {NamedMethod{"count", count_in_list}, NamedMethod{"index", index_in_list},
                                     NamedMethod{"copy", copied}};
constexpr std::array<std::string_view, 8> kOtherListMethods = {"append", "clear",  "extend",  "insert",
                                                               "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 14> kNumberAttributes = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "fromhex", "hex", "imag",
    "is_integer",       "numerator", "real",       "to_bytes",  "from_number"};

struct Methods {
  std::span<const NamedMethod> known;
  std::span<const std::string_view> others;  // that Python has
};

Methods methods_of(const Value& value) {
  if (value.text() != nullptr) return {kTextMethods, kOtherTextMethods};
  if (value.dictionary() != nullptr) return {kDictionaryMethods, kOtherDictionaryMethods};
  if (value.is_number()) return {{}, kNumberAttributes};
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr) return {};
  const std::span<const NamedMethod> of_list(kListMethods);
  if (sequence->kind == Sequence::Kind::kList) return {of_list, kOtherListMethods};
  if (sequence->kind == Sequence::Kind::kTuple) return {of_list.first(2), {}};
  return {};
}

}  // namespace

std::optional<Value> find_method(const Value& value, std::string_view name) {
  const Methods methods = methods_of(value);
  const auto found = std::ranges::find(methods.known, name, &NamedMethod::name);
  if (found == methods.known.end()) {
    if (std::ranges::find(methods.others, name) != methods.others.end()) {
      fail("'{}' of a {} is not supported", name, type_name(value));
    }
    return std::nullopt;
  }
  if (value.text() != nullptr && value.text()->safe) fail("'{}' of text from the filter safe is not supported", name);
  return Value::function(
      std::string(name), [value, call = found->call](Arguments& arguments) { return call(value, arguments); }, value);
}

}  // namespace teratron::jinja
