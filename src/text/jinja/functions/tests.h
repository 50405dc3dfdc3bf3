// Tests, which stand after `is` (jinja.palletsprojects.com, List of Built-in Tests).
#pragma once

#include <string_view>

#include "jinja/values/value.h"

namespace teratron::jinja {

// The first argument is the tested value.
using Test = bool (*)(const Values& arguments);
// The test of this name; null: there is none.
Test find_test(std::string_view name);

}  // namespace teratron::jinja
