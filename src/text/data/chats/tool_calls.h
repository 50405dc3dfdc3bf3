// Tools of chats in JSON: those that an assistant may call, and its calls.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace teratron {

// Parses a JSON text and keeps the order of its keys, in which templates write them. UserError, which begins with
// `name`: the text is not JSON, nests values more than 100 deep, or has an object of more than 500 members, which would
// take quadratic time.
nlohmann::ordered_json parse_in_order(std::string_view text, const std::string& name);

// List of the objects in `value`, a list or its JSON text, as data sets keep it; null: there are none. UserError, which
// begins with `name`: it is something else.
nlohmann::ordered_json read_object_list(const nlohmann::ordered_json& value, const std::string& name);

// Reads a message's calls of tools as such a list: each has a name and arguments, itself or in "function". UserError,
// which begins with `name`: arguments are neither an object nor its JSON text.
nlohmann::ordered_json read_tool_calls(const nlohmann::ordered_json& value, const std::string& name);

// Replaces arguments that are JSON texts, or missing, by objects, which most templates write as JSON.
nlohmann::ordered_json with_object_arguments(nlohmann::ordered_json calls);

}  // namespace teratron
