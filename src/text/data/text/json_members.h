// The members of a JSON object as written, whatever their values: numbers of any size, any depth, and strings with half
// a surrogate pair, which simdjson cannot represent.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

// Calls visit(key, value) for each member of `object` (valid JSON) in order, until it returns false. Values are views
// of `object`, without surrounding spaces; strings include their quotes.
void visit_members(std::string_view object,
                   const std::function<bool(const std::string& key, std::string_view value)>& visit);

// The value of the last member with this key, as in other programs; empty if there is none.
std::optional<std::string_view> find_member(std::string_view object, std::string_view key);

// The last member with this key as a string, without escapes; empty if it is no string.
std::optional<std::string> string_member(std::string_view object, std::string_view key);

// Decodes a valid JSON string with its quotes to UTF-8. Half a surrogate pair becomes U+FFFD.
std::string json_string_value(std::string_view quoted);

// Why a text that is_json() refuses is not one JSON value: "a comma comes before } at byte 9".
std::string json_fault(std::string_view text);

}  // namespace teratron
