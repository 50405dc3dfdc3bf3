// A template's text, on a day in July.
#pragma once

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "jinja/template.h"

namespace teratron::testing {

using namespace jinja;

inline std::string argument(const Arguments& arguments) {
  return arguments.positional.empty() || arguments.positional[0].text() == nullptr
             ? ""
             : arguments.positional[0].text()->bytes;
}

inline std::string rendered(const Template& form, const nlohmann::ordered_json& variables) {
  const auto raise = [](Arguments& arguments) -> Value { fail("raised: {}", argument(arguments)); };
  const auto date = [](Arguments& arguments) -> Value {
    std::tm day{};
    day.tm_year = 124, day.tm_mon = 6, day.tm_mday = 26, day.tm_hour = 12, day.tm_wday = 5, day.tm_yday = 207;
    std::array<char, 256> text{};
    return Value::text({text.data(), std::strftime(text.data(), text.size(), argument(arguments).c_str(), &day)});
  };
  return form.render({.variables = variables, .functions = {{"raise_exception", raise}, {"strftime_now", date}}});
}

inline std::string rendered(const std::string& source, const nlohmann::ordered_json& variables) {
  return rendered(Template(source), variables);
}

}  // namespace teratron::testing
