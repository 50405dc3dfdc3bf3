// TOML (https://toml.io, version 1.0) by toml++, within limits.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace teratron {

// Limit of the parts of a key, as in [a.b.c]. toml++ makes a table for each part and frees tables by recursion, so deep
// keys would exhaust the stack.
inline constexpr int kMostKeyParts = 16;

// Parses TOML. `name`: the file's, for messages. UserError: not valid, or a key of too many parts.
toml::table parse_toml(std::string_view text, const std::string& name);

}  // namespace teratron
