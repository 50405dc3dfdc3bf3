// Version in files, reports, packages and --version. CMakeLists.txt reads it from this file.
#pragma once

#include <string_view>

namespace teratron {

constexpr std::string_view kVersion = "0.1.0";

}  // namespace teratron
