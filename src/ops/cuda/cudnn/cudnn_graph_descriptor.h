// A Graph in cuDNN's own objects.
#pragma once

#include "ops/cuda/cudnn/cudnn_descriptor.h"
#include "ops/cuda/cudnn/cudnn_graph.h"

namespace teratron::cuda {

// The number by which the library knows a tensor when a graph runs.
constexpr std::int64_t unique_id(TensorId tensor) { return std::int64_t{tensor} + 1; }

// Finalized: known to be well formed, not yet that there are kernels for it. That needs no device, and then no handle
// (nullptr). EnvironmentError, in the library's words, for a graph that makes no sense to it.
class GraphDescriptor {
 public:
  GraphDescriptor(const CudnnLibrary& library, const Graph& graph, cudnnHandle_t handle);
  const Descriptor& get() const { return graph_; }

 private:
  std::vector<Descriptor> tensors_, functions_, operations_;  // what graph_ refers to
  Descriptor graph_;
};

}  // namespace teratron::cuda
