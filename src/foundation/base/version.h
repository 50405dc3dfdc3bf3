// The version that files, reports, packages and --version carry; CMakeLists.txt reads it here.
#pragma once

#include <string_view>

namespace teratron {

constexpr std::string_view kVersion = "0.1.0";

}  // namespace teratron
