// Trace of a step: the actions of each stage with their measured times.
#pragma once

#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

struct TraceSpan {
  enum class Kind {
    kPass,          // an action of the schedule
    kReceive,       // waiting for its input
    kSend,          // waiting for a send buffer, or for the receiver
    kGradientSums,  // waiting for sums over data-parallel ranks and the pipeline's ends
  };
  Kind kind = Kind::kPass;
  Action action;              // of no meaning to kGradientSums
  double start = 0, end = 0;  // seconds of a monotonic clock that threads of a host share
};

// Name of a pass in a trace file.
inline const char* trace_name_of(Pass pass) {
  return pass == Pass::kBackwardInput ? "backward without weights" : name_of(pass);
}

}  // namespace teratron::pipeline
