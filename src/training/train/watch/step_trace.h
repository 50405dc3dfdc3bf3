// Times of this rank's work in the last iterations of a run, and the trace file of all ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "comm/mesh.h"
#include "pipeline/timing/trace.h"

namespace teratron {

class StepTrace {
 public:
  static constexpr std::size_t kMostIterations = 20;  // kept: a long run's trace is no longer than a short one's

  // Receives the spans of an iteration until the next begins.
  std::vector<pipeline::TraceSpan>* begin(std::int64_t iteration);

  // This rank's part of a trace file (telemetry/trace_file.h).
  std::string text(int rank, const Mesh& mesh) const;

 private:
  struct Iteration {
    std::int64_t number;
    std::vector<pipeline::TraceSpan> spans;
  };
  std::deque<Iteration> iterations_;
};

// A trace file's text, on the first rank; every rank of `world` calls it. A rank is a process of the file, "stage 1,
// tensor 0, data 0". Times are those of each host's monotonic clock: ranks of one host compare to the microsecond,
// ranks of different hosts do not compare.
std::string gather_trace(const StepTrace& trace, const Mesh& mesh, Communicator& world);

}  // namespace teratron
