// The share of random trials that ./check runs under sanitizers.
#pragma once

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

}  // namespace teratron::testing
