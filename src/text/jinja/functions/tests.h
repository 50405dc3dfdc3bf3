// Tests, what stands after `is` (jinja.palletsprojects.com, List of Built-in Tests).
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

// The first of the arguments is what is tested.
using Test = bool (*)(const Values& arguments);
// Null: there is none of this name.
Test find_test(std::string_view name);

}  // namespace teratron::jinja
