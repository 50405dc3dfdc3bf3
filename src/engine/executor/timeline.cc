#include "executor/timeline.h"

#include <algorithm>
#include <utility>

namespace teratron {

Timeline::Timeline(const std::vector<pipeline::Action>& actions, const StagePart& part, std::vector<int> slices)
    : chunks_(part.chunks()),
      slices_(std::move(slices)),
      most_slices_(*std::ranges::max_element(slices_)),
      passes_(static_cast<std::size_t>(chunks_ * micro_batches() * most_slices_)) {
  int previous = 0;
  for (const pipeline::Action& action : actions) {
    Passes& passes = passes_[index({action.chunk, action.micro_batch, action.slice})];
    passes.layers = part.layers(action.chunk);
    switch (action.pass) {
      case pipeline::Pass::kForward:
        passes.forward = end_;
        passes.received = previous;
        break;
      case pipeline::Pass::kBackward:
      case pipeline::Pass::kBackwardInput: passes.backward = end_; break;
      case pipeline::Pass::kBackwardWeight: passes.weight = end_; break;
    }
    previous = end_;
    end_ += passes.layers + 2;
  }
}

}  // namespace teratron
