#include "executor/timeline.h"

#include <algorithm>
#include <utility>

namespace teratron {

Timeline::Timeline(const std::vector<pipeline::Action>& actions, const StageCells& cells, std::vector<int> slices)
    : chunks_(cells.chunks()),
      slices_(std::move(slices)),
      most_slices_(*std::ranges::max_element(slices_)),
      passes_(static_cast<std::size_t>(chunks_ * micro_batches() * most_slices_)) {
  int previous = 0;
  for (const pipeline::Action& action : actions) {
    Passes& passes = passes_[index({action.chunk, action.micro_batch, action.slice})];
    passes.layers = cells.layers(action.chunk);
    switch (action.pass) {
      case pipeline::Pass::kForward:
        passes.forward = end_;
        passes.received = previous;
        if (passes.embedding < 0) passes.embedding = end_;
        break;
      case pipeline::Pass::kBackward:
      case pipeline::Pass::kBackwardInput:
        passes.backward = end_;
        passes.embedding_backward = passes.backward_end();
        if (passes.head < 0) passes.head = end_;
        break;
      case pipeline::Pass::kBackwardWeight: passes.weight = end_; break;
      case pipeline::Pass::kEmbedding: passes.embedding = end_; break;
      case pipeline::Pass::kHead: passes.head = end_; break;
      case pipeline::Pass::kEmbeddingBackward: passes.embedding_backward = end_; break;
    }
    previous = end_;
    end_ += is_joint(action.pass) ? 1 : passes.layers + 2;
  }
}

}  // namespace teratron
