// Attention as graphs that cuDNN has kernels for: FlashAttention's passes, as the library's documentation spells them
// in matrix products, functions of elements and sums (NVIDIA's cudnn-frontend expands its attention nodes to the same
// operations in the same order, which is what the library recognises).
//
//   forward   S = scale Q K', masked; L = log(sum(exp S)); P = exp(S - max) / sum; O = P V
//   backward  D = sum(dO O); P = exp(S - L); dV = P' dO; dS = scale P (dO V' - D); dK = dS' Q; dQ = dS K
//
// Q, K, V, O and their gradients are of bf16 or f16; sums, L and D are of fp32; P and dS are rounded to the 16-bit type
// before they are multiplied. Axes here are [B, H, S, D], with the strides of the caller's views [B, S, H, D].
#pragma once

#include "ops/backend.h"
#include "ops/cuda/cudnn/cudnn_graph.h"

namespace teratron::cuda {

struct AttentionForwardGraph {
  Graph graph;
  TensorId q, k, v, out, log_sum_exp;
};

struct AttentionBackwardGraph {
  Graph graph;
  TensorId q, k, v, out, log_sum_exp, dout, dq, dk, dv;
  // Workspace that the caller lends: D, fp32 [B, H, S_q], and dQ before it is rounded, fp32 [B, H, S_q, D].
  TensorId products, dq_sums;
};

// Whether cuDNN is asked at all: 16-bit views whose rows start on 16 bytes, head sizes that are multiples of 8 up to
// 128, no dropout (its mask would be another), no lengths (our kernels skip padding), at least two queries, compute
// capability 8 or later. Backward, the gradients of keys and values are overwritten and of the same type: there is no
// way to add to them.
bool takes_cudnn(const AttentionForward& args, int compute_capability_major);
bool takes_cudnn(const AttentionBackward& args, int compute_capability_major);

AttentionForwardGraph attention_graph(const AttentionForward& args);
AttentionBackwardGraph attention_graph(const AttentionBackward& args);

}  // namespace teratron::cuda
