// Weights that a step packs once for the products of all its slices and micro-batches, or an evaluation once for all
// its calls (Backend::pack_weight). A product packs its weight otherwise, which costs as much as some ten rows of it:
// nothing for a thousand rows, and much for a short slice or text. The copies are planned memory. Nothing of them
// outlives a step, so nobody who changes weights between steps needs to know of them. An evaluation keeps them: its
// weights stay as they are from its first call on.
#pragma once

#include <vector>

#include "executor/timeline.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

class PackedWeights {
 public:
  // The place of the head's weights; that of a layer's is its chunk.
  static constexpr int kHead = -1;

  // Plans a copy of some bytes, alive from the first product of its place to the last; 0 bytes: none.
  void add(Arena& arena, Parameter& weight, int place, WeightProduct use, std::int64_t bytes, const Span& life);

  // Packs the place's weights for this use, where that is still to do: products find them in the parameters.
  void pack(Backend& backend, const Arena& arena, int place, WeightProduct use) const;
  // Ends the step: products pack for themselves.
  void forget() const;

 private:
  struct Copy {
    Parameter* weight;
    int place;
    WeightProduct use;
    Arena::Block block;
  };
  std::vector<Copy> copies_;
};

}  // namespace teratron
