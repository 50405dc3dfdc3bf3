#include "finetune/negatives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"

namespace teratron {

void require_whole_groups(std::int64_t batch, std::int64_t micro_batch, std::int64_t copies) {
  if (batch % (micro_batch * copies) == 0) return;
  const std::int64_t whole = std::max(batch / (micro_batch * copies), std::int64_t{1}) * micro_batch * copies;
  throw_user_error(
      "an update has {0}, in micro-batches of {1} that are one another's negatives{2}, so it must have a "
      "multiple of {3}: --global-batch-size {4}, or another --micro-batch-size",
      counted(batch, "example"), micro_batch, copies > 1 ? fmt::format(", on {} copies of the model", copies) : "",
      micro_batch * copies, whole);
}

}  // namespace teratron
