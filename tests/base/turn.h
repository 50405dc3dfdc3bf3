// Shares of long tests that take turns with the commits.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace teratron::testing {

// Whether the fast set of ./check does number `index` of a list at this commit: one of `shares` numbers, another with
// each commit, which is the number in TERATRON_FAST_SET. Elsewhere, all of them.
inline bool has_its_turn(std::size_t index, std::size_t shares) {
  const char* const commit = std::getenv("TERATRON_FAST_SET");
  return commit == nullptr || (index + std::strtoull(commit, nullptr, 10)) % shares == 0;
}

}  // namespace teratron::testing
