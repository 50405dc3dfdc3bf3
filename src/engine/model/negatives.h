// Examples that are one another's negatives: those of a micro-batch (model/text_vector_head.h), the same in every
// layout.
#pragma once

#include "model/config.h"

namespace teratron {

// Whether the examples of a micro-batch are, so that its size is part of what is learned.
inline bool ranks_negatives(const ModelConfig& model) {
  return model.head == ModelHead::kVectors && !model.vectors.are_similarities;
}

}  // namespace teratron
