// Attention of any type, head size and alignment.
#pragma once

#include "ops/cuda/attention/attention.h"

namespace teratron::cuda {

void attend_any(cudaStream_t stream, const AttentionForward& args);
void differentiate_attention_any(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics);

}  // namespace teratron::cuda
