// The version that files, reports and --version carry; the build's project(VERSION) is the same.
#pragma once

#include <string_view>

namespace teratron {

constexpr std::string_view kVersion = "0.1.0";

}  // namespace teratron
