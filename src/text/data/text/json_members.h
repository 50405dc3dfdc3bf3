// The members of a JSON object where they stand in its text, whatever their values: numbers of any size, any depth,
// and strings with half a surrogate pair, which no value of simdjson's can be.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

// Calls visit(key, value) for each member of `object` (valid JSON) in order, until it returns false. Values are those
// bytes of `object`, without spaces around them; of a string with its quotes.
void visit_members(std::string_view object,
                   const std::function<bool(const std::string& key, std::string_view value)>& visit);

// The value of the last member with this key, as other programs take it; nothing where there is none.
std::optional<std::string_view> find_member(std::string_view object, std::string_view key);

// The same of a string, without its escapes; nothing where the value is something else.
std::optional<std::string> string_member(std::string_view object, std::string_view key);

// What a valid JSON string, with its quotes, stands for, in UTF-8. Half a surrogate pair becomes U+FFFD.
std::string json_string_value(std::string_view quoted);

// Why a text is not one JSON value: "a comma stands before } at byte 9"; for a text that is_json() refuses.
std::string json_fault(std::string_view text);

}  // namespace teratron
