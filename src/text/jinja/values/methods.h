// Methods of Python's str, dict, list and tuple.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

// Method, bound to the value; nothing: Python has none of this name. Error: it has, and it is not supported.
std::optional<Value> find_method(const Value& value, std::string_view name);

}  // namespace teratron::jinja
