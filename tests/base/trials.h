// The share of random trials that ./check runs in its fast set.
#pragma once

#include <cstdlib>

namespace teratron::testing {

// trials is `whole`, or a sixth of it in the build of ./check with sanitizers (preset check-asan): few trials show what
// those look at, reads, writes and overflows. Other builds run all.
template <typename Count>
constexpr Count trials(Count whole) {
#ifdef TERATRON_FEWER_TRIALS
  return (whole + 5) / 6;
#else
  return whole;
#endif
}

// Whether ./check runs its fast set (it sets TERATRON_FAST_SET), where the longest tests do a part of what they do in
// ./check --slow and by hand.
inline bool is_fast_set() { return std::getenv("TERATRON_FAST_SET") != nullptr; }

}  // namespace teratron::testing
