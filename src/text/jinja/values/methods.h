// Methods of Python's str, dict, list and tuple.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

// A method, bound to its value; nullopt: Python has none of this name. Error: it is not supported here.
std::optional<Value> find_method(const Value& value, std::string_view name);

}  // namespace teratron::jinja
