// Waits of a block's threads besides bar.sync 0: mbarriers, barriers of some of the warps, registers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "emulated_gpu/ptx/shared_memory.h"

namespace teratron::emulated::ptx {

// A phase ends when as many threads have arrived as it awaits and as many bytes have come as were announced. Who sees
// its end is ordered after those that arrived.
struct Mbarrier {
  unsigned number = 0;  // among those of the block
  std::uint32_t expected = 0, pending = 0;
  std::int64_t bytes = 0;  // announced and not there
  std::uint32_t phase = 0;
  Clock arrivals, ended;  // of this phase and those before it; of the last phase that ended

  bool has_ended(std::uint32_t parity) const { return (phase & 1) != (parity & 1); }
  void end_phase_if_complete() {
    if (pending != 0 || bytes != 0) return;
    ++phase;
    pending = expected;
    ended = arrivals;
  }
  std::string text() const;
};

// By address.
class Mbarriers {
 public:
  void reset() { all_.clear(); }
  // Null: there are too many.
  Mbarrier* make(std::uint64_t address, std::uint32_t expected);
  Mbarrier* find(std::uint64_t address);  // or null

 private:
  std::map<std::uint64_t, Mbarrier> all_;
};

// bar.sync and bar.arrive with a number and a count of threads.
struct NamedBarrier {
  std::uint32_t threads = 0, arrived = 0, generation = 0;
  Clock arrivals, ended;

  // Empty, or the fault: another count than the others'.
  std::string arrive(std::uint32_t count, std::uint32_t lanes, const Clock& clock);
};

}  // namespace teratron::emulated::ptx
