#include "jinja/functions/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/utf8.h"
#include "jinja/values/arguments.h"
#include "jinja/values/printing.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

Value trim(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("trim", arguments, {"value", "chars"});
  std::optional<std::string> characters;
  if (bound.has(1) && !bound[1].is_none()) characters = text_of(bound[1]);
  const bool safe = bound[0].text() != nullptr && bound[0].text()->safe;
  return Value::text(std::string(stripped(text_of(bound[0]), characters)), safe);
}

template <std::string (*kChange)(std::string_view)>
Value changed_by(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("a filter of texts", arguments, {"s"});
  return Value::text(kChange(text_of(bound[0])));
}

// Jinja's: words begin after white space, and after - ( { [ and <.
std::string title_of_words(std::string_view text) {
  std::string out;
  bool begins = true;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, decode_utf8(text).length);
    text.remove_prefix(character.size());
    const bool parts = character.find_first_of("-({[<") == 0 || !stripped(character, std::nullopt, true, false).size();
    out += parts ? std::string(character) : begins ? upper(character) : lower(character);
    begins = parts;
  }
  return out;
}

Value filter_default(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("default", arguments, {"value", "default_value", "boolean"});
  const bool takes = bound[0].is_undefined() || (bound.flag_or(2, false) && !is_true(bound[0]));
  if (!takes) return bound[0];
  return bound.has(1) ? bound[1] : Value::text("");
}

Value filter_length(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("length", arguments, {"obj"});
  return length(bound[0]);
}

Value filter_string(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("string", arguments, {"object"});
  return bound[0].text() != nullptr ? bound[0] : Value::text(text_of(bound[0]));
}

Value safe(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("safe", arguments, {"value"});
  return Value::text(text_of(bound[0]), true);
}

Value filter_replace(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("replace", arguments, {"s", "old", "new", "count"}, 3);
  return Value::text(replaced(text_of(bound[0]), text_of(bound[1]), text_of(bound[2]), bound.integer_or(3, -1)));
}

// An indentation: a text, or a number of spaces, of which less than 0 is none.
std::string indentation(const Bound& bound, std::size_t argument, std::int64_t other) {
  if (bound.has(argument) && bound[argument].text() != nullptr) return bound[argument].text()->bytes;
  constexpr std::int64_t kWidest = 1'000'000;
  const std::int64_t width = bound.integer_or(argument, other);
  if (width > kWidest) fail("an indentation of {} spaces is not supported; the widest has {}", width, kWidest);
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
}

Value indent(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("indent", arguments, {"s", "width", "first", "blank"});
  const std::string by = indentation(bound, 1, 4);
  const bool first = bound.flag_or(2, false), blank = bound.flag_or(3, false);
  if (bound[0].text() == nullptr) fail("indent takes a string, and not a {}", type_name(bound[0]));
  const std::string text = bound[0].text()->bytes + "\n";
  std::string out = first ? by : "";
  bool is_first = true;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (!std::exchange(is_first, false)) append(out, blank || !line.empty() ? "\n" + by : "\n");
    append(out, line);
  }
  return Value::text(std::move(out));
}

JsonForm json_form(const Bound& bound) {
  JsonForm form{.ascii = bound.flag_or(1, false), .sort_keys = bound.flag_or(4, false), .indent = {}};
  if (bound.has(2) && !bound[2].is_none()) {
    form.indent = indentation(bound, 2, 0);
    form.between.pop_back();  // no space at the end of a line
  }
  if (bound.has(3) && !bound[3].is_none()) {
    const Values both = elements(bound[3]);
    if (both.size() != 2 || both[0].text() == nullptr || both[1].text() == nullptr) {
      fail("tojson takes two texts as separators");
    }
    form.between = both[0].text()->bytes;
    form.after_key = both[1].text()->bytes;
  }
  return form;
}

Value tojson(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("tojson", arguments, {"x", "ensure_ascii", "indent", "separators", "sort_keys"});
  return Value::text(to_json(bound[0], json_form(bound)));
}

Value whole(double number) {
  if (!(std::abs(number) < 9e18)) fail("the number {} is above 2^63", written(number));
  return static_cast<std::int64_t>(number);
}

Value filter_int(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("int", arguments, {"value", "default", "base"});
  if (bound.integer_or(2, 10) != 10) fail("int with a base is not supported");
  require_defined(bound[0]);
  if (bound[0].is_integer()) return bound[0].integer();
  if (const double* number = bound[0].get<double>(); number != nullptr && !std::isnan(*number)) return whole(*number);
  if (const Text* text = bound[0].text()) {
    if (const auto number = integer_of(text->bytes)) return *number;
    if (const auto number = real_of(text->bytes); number && std::isfinite(*number)) return whole(*number);
  }
  return bound.has(1) ? bound[1] : Value(std::int64_t{0});
}

Value filter_float(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("float", arguments, {"value", "default"});
  require_defined(bound[0]);
  if (bound[0].is_number()) return bound[0].number();
  if (const Text* text = bound[0].text()) {
    if (const auto number = real_of(text->bytes)) return *number;
  }
  return bound.has(1) ? bound[1] : Value(0.0);
}

Value filter_abs(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("abs", arguments, {"x"});
  if (!bound[0].is_number()) fail("bad operand type for abs(): '{}'", type_name(bound[0]));
  if (!bound[0].is_integer()) return std::abs(bound[0].number());
  if (bound[0].integer() == INT64_MIN) fail("a number is above 2^63");
  return std::abs(bound[0].integer());
}

// Python's round(): the number whose digits fmt writes exactly; half of a last digit goes to the even one.
Value filter_round(Renderer& /*renderer*/, Arguments& arguments) {
  const Bound bound("round", arguments, {"value", "precision", "method"});
  const std::int64_t precision = bound.integer_or(1, 0);
  if (!bound[0].is_number()) fail("round of a {}", type_name(bound[0]));
  const std::string method = bound.has(2) ? text_of(bound[2]) : "common";
  const double number = bound[0].number();
  if (method != "common") {
    if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
    const double scale = std::pow(10.0, static_cast<double>(precision));
    return (method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale)) / scale;
  }
  if (precision < 0 || precision > 100) fail("round to {} places is not supported", precision);
  if (bound[0].is_integer()) return bound[0].integer();  // true is 1
  return std::stod(fmt::format("{:.{}f}", number, precision));
}

constexpr std::array kFilters = {NamedFilter{"trim", trim},
                                 NamedFilter{"upper", changed_by<upper>},
                                 NamedFilter{"lower", changed_by<lower>},
                                 NamedFilter{"capitalize", changed_by<capitalized>},
                                 NamedFilter{"title", changed_by<title_of_words>},
                                 NamedFilter{"default", filter_default},
                                 NamedFilter{"d", filter_default},
                                 NamedFilter{"length", filter_length},
                                 NamedFilter{"count", filter_length},
                                 NamedFilter{"string", filter_string},
                                 NamedFilter{"safe", safe},
                                 NamedFilter{"replace", filter_replace},
                                 NamedFilter{"indent", indent},
                                 NamedFilter{"tojson", tojson},
                                 NamedFilter{"int", filter_int},
                                 NamedFilter{"float", filter_float},
                                 NamedFilter{"abs", filter_abs},
                                 NamedFilter{"round", filter_round}};

constexpr std::array<std::string_view, 19> kOtherFilters = {
    "attr",      "batch",   "center",    "e",        "escape", "filesizeformat", "forceescape",
    "format",    "groupby", "pprint",    "random",   "slice",  "striptags",      "truncate",
    "urlencode", "urlize",  "wordcount", "wordwrap", "xmlattr"};

}  // namespace

Filter find_filter(std::string_view name) {
  const auto found = std::ranges::find(kFilters, name, &NamedFilter::name);
  return found != kFilters.end() ? found->filter : find_sequence_filter(name);
}

bool is_unsupported_filter(std::string_view name) {
  return std::ranges::find(kOtherFilters, name) != kOtherFilters.end();
}

}  // namespace teratron::jinja
