// Faults of values that a user has given, one line each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Adds a fault where --flag's value is out of its range.
void need_between(std::vector<std::string>& faults, std::string_view flag, std::int64_t value, std::int64_t least,
                  std::int64_t most);

}  // namespace teratron
