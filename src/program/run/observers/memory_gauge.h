// Memory that the ranks of a run hold, for its logs.
#pragma once

#include <cstdint>

#include "run/live_status.h"
#include "tensor/memory.h"

namespace teratron {

class MemoryGauge {
 public:
  // `own`: the first rank's memory, which lives as long as the gauge, as does `board`. `ranks_here`: ranks of this
  // process, which share its memory. `planned`: bytes of the rank that needs most, by its plan.
  MemoryGauge(const RankBoard& board, const Allocator& own, int ranks_here, std::int64_t planned)
      : board_(board), own_(own), ranks_here_(ranks_here), planned_(planned) {}

  std::int64_t planned() const { return planned_; }

  // Bytes that the rank with most holds: its share of its process's resident memory, in which are the program and the
  // parts of the corpus that the kernel keeps in memory; other processes' is that of a second ago. On a GPU, what the
  // first rank has taken of it. Measured at most ten times a second, and once for all logs of an update. 0: the system
  // does not say.
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
