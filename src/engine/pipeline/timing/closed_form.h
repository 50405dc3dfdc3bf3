// Costs of schedules in the literature, to compare simulations and measurements with.
#pragma once

#include <optional>

#include "pipeline/generators.h"

namespace teratron::pipeline {

// p stages, m micro-batches of k slices, v virtual stages; stages and slices alike, transfers free.
struct ClosedForm {
  double bubble = 0;              // of every stage, in the unit of `forward` and `backward`
  double peak_micro_batches = 0;  // most activations alive at stage 0, where 1 is a micro-batch's in a whole stage
};

// `forward` and `backward`: of a whole micro-batch in a whole stage.
//   gpipe        bubble (p-1)(F+B)     peak m
//   1f1b                (p-1)(F+B)          p               but never more than m
//   interleaved         (p-1)(F+B)/v        p + (p-1)/v     "   (v = 1 is 1f1b)
//   terapipe            (p-1)(F+B)/k        m
//   seq1f1b             (p-1)(F+B)/k        (p+k-1)/k       "
//   seq1f1b-i           (p-1)(F+B)/(vk)     (2(p-1)+k+(v-1)g)/(vk)  "   (v = 1 is seq1f1b)
// where g slices are the whole micro-batches that make p slices or more. Nothing where such groups do not share out the
// micro-batches, and for schedules of the V placement (v_most_slices() bounds their memory).
std::optional<ClosedForm> closed_form(ScheduleKind kind, const ScheduleSize& size, double forward, double backward);

}  // namespace teratron::pipeline
