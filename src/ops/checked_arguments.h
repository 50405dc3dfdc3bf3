// What the public members of Backend do first: an overload per operation that checks its arguments against the rules
// in backend.h and returns them in the form that do_* members are promised (rows flattened).
#pragma once

#include "ops/backend.h"

namespace teratron {

LinearForward checked(LinearForward args, DType compute_dtype);
LinearInputGradient checked(LinearInputGradient args, DType compute_dtype);
LinearWeightGradient checked(LinearWeightGradient args, DType compute_dtype);
LayerNormForward checked(LayerNormForward args, DType compute_dtype);
LayerNormBackward checked(LayerNormBackward args, DType compute_dtype);
ResidualAdd checked(ResidualAdd args, DType compute_dtype);
AttentionForward checked(AttentionForward args, DType compute_dtype);
CachedAttention checked(CachedAttention args, DType compute_dtype);
AttentionBackward checked(AttentionBackward args, DType compute_dtype);
EmbeddingForward checked(EmbeddingForward args, DType compute_dtype);
EmbeddingBackward checked(EmbeddingBackward args, DType compute_dtype);
CrossEntropyPartials checked(CrossEntropyPartials args, DType compute_dtype);
CrossEntropyBackward checked(CrossEntropyBackward args, DType compute_dtype);
AdamW checked(AdamW args, DType compute_dtype);

}  // namespace teratron
