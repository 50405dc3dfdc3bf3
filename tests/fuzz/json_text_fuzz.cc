// JSON by its grammar, beside nlohmann's parser, which refuses numbers and bytes that the grammar has, and takes a byte
// of zero for the end.
#include <nlohmann/json.hpp>

#include "data/text/json_members.h"
#include "data/text/json_scanner.h"
#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const bool is = is_json(input);
  const bool is_comparable = !input.starts_with("\xEF\xBB\xBF") && input.find('\0') == std::string_view::npos;
  if (is_comparable && nlohmann::json::accept(input)) require(is, "what nlohmann reads is JSON");
  if (!is) {
    require(!json_fault(input).empty(), "a text that is no JSON has a fault");
    return;
  }
  const std::size_t begin = input.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || input[begin] != '{') return;
  const std::string_view object = input.substr(begin);
  visit_members(object, [&](const std::string& key, std::string_view value) {
    require(find_member(object, key).has_value(), "a key that is visited is found");
    if (value.front() == '"') json_string_value(value);
    return true;
  });
  string_member(object, "text");
}
