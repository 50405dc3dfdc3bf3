#include "executor/timeline.h"

#include <algorithm>
#include <utility>

namespace teratron {
namespace {

// Start of the last action so far that every step with this micro-batch has: a step with fewer of them leaves out the
// actions of the later ones.
int received(const std::vector<pipeline::Action>& actions, const std::vector<int>& starts, int micro_batch) {
  for (std::size_t place = starts.size(); place-- > 0;) {
    if (actions[place].micro_batch <= micro_batch) return starts[place];
  }
  return 0;
}

}  // namespace

Timeline::Timeline(const std::vector<pipeline::Action>& actions, const StageCells& cells, std::vector<int> slices)
    : chunks_(cells.chunks()),
      slices_(std::move(slices)),
      most_slices_(*std::ranges::max_element(slices_)),
      passes_(static_cast<std::size_t>(chunks_ * micro_batches() * most_slices_)) {
  std::vector<int> starts;  // of the actions so far
  for (const pipeline::Action& action : actions) {
    Passes& passes = passes_[index({action.chunk, action.micro_batch, action.slice})];
    passes.layers = cells.layers(action.chunk);
    switch (action.pass) {
      case pipeline::Pass::kForward:
        passes.forward = end_;
        passes.received = received(actions, starts, action.micro_batch);
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
    starts.push_back(end_);
    end_ += is_joint(action.pass) ? 1 : passes.layers + 2;
  }
}

}  // namespace teratron
