// Attention on Hopper's own instructions (attention_hopper*.cu): --hopper-attention.
#pragma once

#include <cuda_runtime.h>

#include "ops/backend.h"

namespace teratron::cuda {

struct QueryStatistics;  // attention.h, which is for the CUDA compiler alone

// Whether the device is of compute capability 9.0: no other has the instructions.
bool is_hopper(const cudaDeviceProp& device);
// EnvironmentError unless it is.
void require_hopper(const cudaDeviceProp& device);

// 16-bit types, heads of up to 128 columns that are multiples of 8, rows that start on 16 bytes; UserError for others.
// Padding, documents, dropout and key heads that query heads share are all taken.
void attend_hopper(cudaStream_t stream, const AttentionForward& args);
// Takes what attend_hopper() does, with gradients whose rows start on 16 bytes, too; UserError for others.
void differentiate_attention_hopper(cudaStream_t stream, const AttentionBackward& args,
                                    const QueryStatistics* statistics);

// Its two kernels.
void add_key_gradients_hopper(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics);
void add_query_gradients_hopper(cudaStream_t stream, const AttentionBackward& args, const QueryStatistics* statistics);

}  // namespace teratron::cuda
