#include "executor/packed_weights.h"

namespace teratron {

void PackedWeights::add(Arena& arena, Parameter& weight, int place, WeightProduct use, std::int64_t bytes,
                        const Span& life) {
  if (bytes == 0 || life.is_empty()) return;
  const Arena::Block block =
      arena.add(weight.name + ".packed", MemoryKind::kPackedWeights, DType::kU8, {bytes}, life.first, life.last);
  copies_.push_back({&weight, place, use, block});
}

void PackedWeights::pack(Backend& backend, const Arena& arena, int place, WeightProduct use) const {
  for (const Copy& copy : copies_) {
    TensorRef& packed = copy.weight->packed_for(use);
    if (copy.place != place || copy.use != use || packed) continue;
    backend.pack_weight(arena[copy.block], copy.weight->value, use);
    packed = arena[copy.block];
  }
}

void PackedWeights::forget() const {
  for (const Copy& copy : copies_) copy.weight->packed_for(copy.use) = {};
}

}  // namespace teratron
