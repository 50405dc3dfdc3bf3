// Memory that the ranks of a run hold, for its logs.
#pragma once

#include <cstdint>

#include "run/live_status.h"
#include "tensor/memory.h"

namespace teratron {

class MemoryGauge {
 public:
  // `own`: the first rank's memory. It and `board` outlive the gauge. `ranks_here`: ranks of this process, which share
  // its memory. `planned`: bytes of the rank that needs most, by its plan.
  MemoryGauge(const RankBoard& board, const Allocator& own, int ranks_here, std::int64_t planned)
      : board_(board), own_(own), ranks_here_(ranks_here), planned_(planned) {}

  std::int64_t planned() const { return planned_; }

  // Bytes of the rank that holds most. On CPUs: a rank's share of its process's resident memory, which includes the
  // program and the corpus's pages in memory; those of other processes are a second old. On a GPU: the first rank's
  // allocations. Measured at most ten times a second, and once for all logs of an update. 0: the system does not say.
  std::int64_t fullest(std::int64_t iteration);

 private:
  std::int64_t measured() const;

  const RankBoard& board_;
  const Allocator& own_;
  const int ranks_here_;
  const std::int64_t planned_;
  std::int64_t last_ = 0;
  std::int64_t iteration_ = -1;
  double measured_at_ = 0;
};

}  // namespace teratron
