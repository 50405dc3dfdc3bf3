// Attention as nodes of cudnn-frontend, which expands them to the operations that cuDNN has kernels for.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <vector>

#include "ops/backend.h"

namespace teratron::cuda {

using CudnnGraph = cudnn_frontend::graph::Graph;

// Ids of the tensors of a call in a graph.
enum AttentionTensorId : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kLogSumExp,
  kOutGradient,
  kQGradient,
  kKGradient,
  kVGradient
};
struct AttentionTensor {
  AttentionTensorId id;
  TensorRef view;
};
std::vector<AttentionTensor> tensors_of(const AttentionForward& args);
std::vector<AttentionTensor> tensors_of(const AttentionBackward& args);

// Not validated or built yet. Calls that takes_cudnn() excludes have no graph. `compute_capability` is 90 for 9.0; with
// it the library asks no device.
std::unique_ptr<CudnnGraph> attention_graph(const AttentionForward& args, int compute_capability);
std::unique_ptr<CudnnGraph> attention_graph(const AttentionBackward& args, int compute_capability);

// Everything that a graph depends on: types, sizes, strides, mask, scale. Passes have keys of different lengths.
using CudnnGraphKey = std::vector<std::int64_t>;
CudnnGraphKey key_of(const AttentionForward& args);
CudnnGraphKey key_of(const AttentionBackward& args);

// EnvironmentError with the first line of cudnn-frontend's words, unless it is good. Others follow for each kernel that
// does not fit.
void require(const cudnn_frontend::error_t& status, std::string_view what);

}  // namespace teratron::cuda
