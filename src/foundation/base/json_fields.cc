#include "base/json_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace teratron {

using Json = nlohmann::json;

namespace {

constexpr std::string_view kNumberCharacters = "+-.0123456789Ee";
constexpr auto kNotFinite = std::to_array<std::string_view>({"NaN", "-Infinity", "Infinity"});

// Whether all of `text` is a number that is beyond the type's range.
template <class Number>
bool is_beyond(std::string_view text) {
  Number number{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc::result_out_of_range && end == text.data() + text.size();
}

// Whether `text` is a number of JSON, which has no "1.", ".5", "+5" or "05"; std::from_chars() takes most of these.
bool is_json_number(std::string_view text) {
  const auto take_digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool begins_with_zero = text.starts_with('0');
  const std::size_t whole = take_digits();
  if (whole == 0 || (begins_with_zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

// Text that is no number of JSON stays as it is, so that parsing it fails.
std::string fit_number(std::string_view number) {
  if (!is_json_number(number)) return std::string(number);
  if (!is_beyond<double>(number)) {
    const bool fits = number.starts_with('-') ? !is_beyond<std::int64_t>(number) : !is_beyond<std::uint64_t>(number);
    return std::string(number) + (fits ? "" : ".0");
  }
  const bool is_small = std::abs(std::strtod(std::string(number).c_str(), nullptr)) < 1;
  const std::string_view largest = number.starts_with('-') ? "-1.7976931348623157e308" : "1.7976931348623157e308";
  return std::string(is_small ? "0.0" : largest);
}

// A string, with U+FFFD for each half of a surrogate pair.
std::string fit_string(std::string_view string) {
  constexpr std::string_view kHighs = "89ABab", kLows = "CDEFcdef";  // the digits after \uD
  const auto is_half = [&](std::size_t at, std::string_view digits) {
    const std::string_view escape = string.substr(std::min(at, string.size()), 6);
    return escape.size() == 6 && (escape.starts_with("\\uD") || escape.starts_with("\\ud")) &&
           digits.find(escape[3]) != digits.npos &&
           escape.find_first_not_of("0123456789ABCDEFabcdef", 3) == escape.npos;
  };
  std::string fitted;
  for (std::size_t at = 0; at < string.size();) {
    const bool is_high = is_half(at, kHighs), is_pair = is_high && is_half(at + 6, kLows);
    const bool is_alone = !is_pair && (is_high || is_half(at, kLows));
    const std::size_t length = is_pair ? 12 : is_alone ? 6 : string[at] == '\\' ? 2 : 1;
    fitted += is_alone ? "\\ufffd" : string.substr(at, length);
    at += length;
  }
  return fitted;
}

// Length of the string at the beginning of `json`, with its quotes.
std::size_t string_length(std::string_view json) {
  std::size_t end = 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return std::min(end + 1, json.size());
}

}  // namespace

bool nests_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (in_string && byte == '\\') {
      ++i;
    } else if (byte == '"') {
      in_string = !in_string;
    } else if (!in_string && (byte == '[' || byte == '{')) {
      if (++depth > kDeepestJson) return true;
    } else if (!in_string && (byte == ']' || byte == '}')) {
      --depth;
    }
  }
  return false;
}

std::string fit_json(std::string_view json) {
  std::string fitted;
  while (!json.empty()) {
    std::size_t length = 1;
    if (const auto* const name = std::ranges::find_if(kNotFinite, [&](auto one) { return json.starts_with(one); });
        name != kNotFinite.end()) {
      length = name->size();
      fitted += "null";
    } else if (json[0] == '-' || (json[0] >= '0' && json[0] <= '9')) {
      length = std::min(json.find_first_not_of(kNumberCharacters), json.size());
      fitted += fit_number(json.substr(0, length));
    } else if (json[0] == '"') {
      length = string_length(json);
      fitted += fit_string(json.substr(0, length));
    } else {
      fitted += json[0];
    }
    json.remove_prefix(length);
  }
  return fitted;
}

Json parse_json_object(std::string_view text, const std::filesystem::path& path) {
  if (nests_too_deep(text)) {
    throw_user_error("'{}' nests values more than {} deep, which no file of this kind does", path.string(),
                     kDeepestJson);
  }
  Json json = parse_fitted<Json>(text);
  if (!json.is_object())
    throw_user_error("'{}' is not a JSON object, or not all of one; copy or make it again", path.string());
  return json;
}

bool JsonFields::contains(std::string_view key) const { return object_.contains(std::string(key)); }

bool JsonFields::has(std::string_view key) const {
  const auto field = object_.find(std::string(key));
  return field != object_.end() && !field->is_null();
}

void JsonFields::throw_not(std::string_view key, std::string_view wanted) const {
  throw_user_error("'{}': \"{}\" must be {}", path_.string(), key, wanted);
}

const Json& JsonFields::operator[](std::string_view key) const {
  const auto field = object_.find(std::string(key));
  if (field == object_.end())
    throw_user_error("'{}' lacks \"{}\"; add it, or copy or make the file again", path_.string(), key);
  return *field;
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const Json& field = (*this)[key];
  // A number beyond 63 bits is kept as unsigned; anything with a point or an exponent is not an integer.
  const bool fits = field.is_number_integer() &&
                    (!field.is_number_unsigned() || field.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!fits || field.get<std::int64_t>() < least || field.get<std::int64_t>() > most) {
    throw_not(key, fmt::format("an integer from {} to {}", least, most));
  }
  return field.get<std::int64_t>();
}

std::uint64_t JsonFields::unsigned_integer(std::string_view key) const {
  const Json& field = (*this)[key];
  if (!field.is_number_unsigned()) throw_not(key, "an integer that is not negative");
  return field.get<std::uint64_t>();
}

double JsonFields::number(std::string_view key) const {
  const Json& field = (*this)[key];
  if (!field.is_number() || !std::isfinite(field.get<double>())) throw_not(key, "a number");
  return field.get<double>();
}

bool JsonFields::boolean(std::string_view key) const {
  const Json& field = (*this)[key];
  if (!field.is_boolean()) throw_not(key, "true or false");
  return field.get<bool>();
}

std::string JsonFields::string(std::string_view key) const {
  const Json& field = (*this)[key];
  if (!field.is_string()) throw_not(key, "a string");
  return field.get<std::string>();
}

const Json& JsonFields::object(std::string_view key) const {
  const Json& field = (*this)[key];
  if (!field.is_object()) throw_not(key, "an object");
  return field;
}

}  // namespace teratron
