#include "executor/pass_graphs.h"

namespace teratron {

void PassGraphs::run(Kind kind, const SliceCall& call, int layer, const TensorRef& stream,
                     const std::function<void()>& work) {
  const auto& [pass, key] = call;
  if (!pass.counters) return work();
  const Key wanted{.kind = kind,
                   .chunk = key.chunk,
                   .micro_batch = key.micro_batch,
                   .slice = key.slice,
                   .layer = layer,
                   .batch = pass.batch,
                   .tokens = pass.tokens,
                   .sequence_length = pass.sequence_length,
                   .seed = pass.seed,
                   .accumulate = pass.accumulate,
                   .weights_later = pass.weights_later,
                   .stream = stream.data,
                   .key_lengths = pass.key_lengths.data,
                   .first_keys = pass.first_keys.data,
                   .position_ids = pass.position_ids.data};
  auto found = graphs_.find(wanted);
  if (found == graphs_.end()) {
    if (graphs_.size() == kMost) return work();
    found = graphs_.emplace(wanted, nullptr).first;
  }
  backend_.replay(found->second, work);
}

}  // namespace teratron
