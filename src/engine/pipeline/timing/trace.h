// What a stage did in a step, as it happened.
#pragma once

#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

struct TraceSpan {
  enum class Kind {
    kPass,          // an action of the schedule
    kReceive,       // waiting for what it works on
    kSend,          // waiting for a place of something sent, or for its receiver
    kGradientSums,  // waiting for sums over data-parallel ranks and the pipeline's ends
  };
  Kind kind = Kind::kPass;
  Action action;              // of no meaning to kGradientSums
  double start = 0, end = 0;  // seconds of a monotonic clock that threads of a host share
};

}  // namespace teratron::pipeline
