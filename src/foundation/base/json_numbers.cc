#include "base/json_numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace teratron {
namespace {

constexpr std::string_view kNumberCharacters = "+-.0123456789Ee";
constexpr auto kNotFinite = std::to_array<std::string_view>({"NaN", "-Infinity", "Infinity"});

template <class Number>
std::errc fault_of(std::string_view text) {
  Number number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec;
}

std::string fit_number(std::string_view number) {
  if (number.find_first_of(".Ee") == number.npos) {
    const bool fits = fault_of<std::int64_t>(number) == std::errc() || fault_of<std::uint64_t>(number) == std::errc();
    if (fits || fault_of<double>(number) == std::errc()) return std::string(number) + (fits ? "" : ".0");
  } else if (fault_of<double>(number) != std::errc::result_out_of_range) {
    return std::string(number);
  }
  const bool is_small = std::abs(std::strtod(std::string(number).c_str(), nullptr)) < 1;
  const std::string_view largest = number.starts_with('-') ? "-1.7976931348623157e308" : "1.7976931348623157e308";
  return std::string(is_small ? "0.0" : largest);
}

// The length of the string that `json` begins with, its quotes included.
std::size_t string_length(std::string_view json) {
  std::size_t end = 1;
  while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
  return std::min(end + 1, json.size());
}

}  // namespace

std::string fit_json_numbers(std::string_view json) {
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
    } else {
      if (json[0] == '"') length = string_length(json);
      fitted += json.substr(0, length);
    }
    json.remove_prefix(length);
  }
  return fitted;
}

}  // namespace teratron
