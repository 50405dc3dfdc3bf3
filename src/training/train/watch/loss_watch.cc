#include "train/watch/loss_watch.h"

#include <algorithm>

namespace teratron {

bool LossWatch::explodes(double loss) {
  constexpr double kMemory = 0.9;
  if (!level_) lowest_ = loss;
  level_ = level_ ? kMemory * *level_ + (1 - kMemory) * loss : loss;
  lowest_ = std::min(lowest_, *level_);
  const bool was_exploded = exploded_;
  exploded_ = is_far_up(loss);
  return exploded_ && !was_exploded;
}

}  // namespace teratron
