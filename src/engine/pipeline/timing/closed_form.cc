#include "pipeline/timing/closed_form.h"

#include <algorithm>

namespace teratron::pipeline {

ClosedForm closed_form(ScheduleKind kind, const ScheduleSize& size, double forward, double backward) {
  const double p = size.stages, m = size.micro_batches, k = size.slices, v = size.virtual_stages;
  const double bubble = (p - 1) * (forward + backward);
  switch (kind) {
    case ScheduleKind::kGpipe: return {bubble, m};
    case ScheduleKind::k1F1B: return {bubble, std::min(m, p)};
    case ScheduleKind::kInterleaved: return {bubble / v, std::min(m, v > 1 ? p + (p - 1) / v : p)};
    case ScheduleKind::kTeraPipe: return {bubble / k, m};
    case ScheduleKind::kSeq1F1B: return {bubble / k, std::min(m, (p + k - 1) / k)};
  }
  return {};
}

}  // namespace teratron::pipeline
