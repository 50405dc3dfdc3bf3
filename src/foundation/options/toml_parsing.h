// TOML (https://toml.io, version 1.0) as toml++ reads it, within limits.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace teratron {

// Parts of a key, as in [a.b.c] or a.b.c = 1. toml++ limits how deep values nest, but makes a table for each part and
// frees tables by recursion, which takes a stack frame for each.
inline constexpr int kMostKeyParts = 16;

// UserError: not valid TOML, or a key of more parts. `name`: of the file, for messages.
toml::table parse_toml(std::string_view text, const std::string& name);

}  // namespace teratron
