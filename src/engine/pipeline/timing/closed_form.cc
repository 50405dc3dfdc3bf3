#include "pipeline/timing/closed_form.h"

#include <algorithm>

namespace teratron::pipeline {

std::optional<ClosedForm> closed_form(ScheduleKind kind, const ScheduleSize& size, double forward, double backward) {
  const double p = size.stages, m = size.micro_batches, k = size.slices, v = size.virtual_stages;
  const double bubble = (p - 1) * (forward + backward);
  switch (kind) {
    case ScheduleKind::kGpipe: return ClosedForm{bubble, m};
    case ScheduleKind::k1F1B: return ClosedForm{bubble, std::min(m, p)};
    case ScheduleKind::kInterleaved: return ClosedForm{bubble / v, std::min(m, v > 1 ? p + (p - 1) / v : p)};
    case ScheduleKind::kTeraPipe: return ClosedForm{bubble / k, m};
    case ScheduleKind::kSeq1F1B: return ClosedForm{bubble / k, std::min(m, (p + k - 1) / k)};
    case ScheduleKind::kSeq1F1BInterleaved: {
      if (size.virtual_stages == 1) return closed_form(ScheduleKind::kSeq1F1B, size, forward, backward);
      const int group_size = (size.stages + size.slices - 1) / size.slices;
      if (size.micro_batches % group_size != 0) return std::nullopt;
      const double group = group_size * k;
      return ClosedForm{bubble / (k * v), std::min(m, (2 * (p - 1) + k + (v - 1) * group) / (k * v))};
    }
    case ScheduleKind::kVMin:
    case ScheduleKind::kVHalf:
    case ScheduleKind::kVZeroBubble: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace teratron::pipeline
