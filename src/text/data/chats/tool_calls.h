// Tools of chats in JSON: those that an assistant may call, and its calls.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace teratron {

// List of the objects in `value`, a list or its JSON text, as data sets keep it; null: there are none. UserError, which
// begins with `name`: it is something else.
nlohmann::ordered_json read_object_list(const nlohmann::ordered_json& value, const std::string& name);

// Calls of tools in a message, read so: each has a name and arguments, by itself or as its "function". UserError, which
// begins with `name`: arguments are neither an object nor its JSON text.
nlohmann::ordered_json read_tool_calls(const nlohmann::ordered_json& value, const std::string& name);

// Calls whose arguments are objects, where they were texts or missing: most templates write them as JSON.
nlohmann::ordered_json with_object_arguments(nlohmann::ordered_json calls);

}  // namespace teratron
