#include "executor/timeline.h"

namespace teratron {

Timeline::Timeline(const std::vector<pipeline::Action>& actions, const StagePart& part, int micro_batches, int slices)
    : chunks_(part.chunks()),
      micro_batches_(micro_batches),
      slices_(slices),
      passes_(static_cast<std::size_t>(chunks_ * micro_batches * slices)) {
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
