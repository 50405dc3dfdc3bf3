// Attention by cuDNN, where a call can be: CudaOptions::cudnn_attention asks for it. It was never run on a GPU. Sums of
// dQ are added in the order in which blocks end, so its backward pass does not repeat bit by bit.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ops/backend.h"
#include "ops/cuda/cudnn/cudnn_attention_graphs.h"
#include "ops/cuda/cudnn/cudnn_engine.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class CudnnAttention {
 public:
  // Runs on that stream of the current device. EnvironmentError where there is no cuDNN (cudnn_engine.h).
  CudnnAttention(cudaStream_t stream, int compute_capability_major);

  // False: nothing was done and our own kernels have to. That is what takes_cudnn() leaves to them, and shapes for
  // which the library turns out to have no kernels on this device, which is said once on standard error.
  bool forward(const AttentionForward& args, Scratch& scratch);
  bool backward(const AttentionBackward& args, Scratch& scratch);

 private:
  // All that a graph hangs on: sizes, strides, type, mask, scale.
  using Key = std::vector<std::int64_t>;
  template <class AttentionGraph>
  struct Plan {
    AttentionGraph tensors;
    std::shared_ptr<const CudnnEngine::Plan> plan;  // null: the library has no kernels
  };

  template <class AttentionGraph, class Args>
  const Plan<AttentionGraph>& plan_for(std::map<Key, Plan<AttentionGraph>>& plans, const Args& args);

  CudnnEngine engine_;
  int compute_capability_major_;
  std::map<Key, Plan<AttentionForwardGraph>> forward_;
  std::map<Key, Plan<AttentionBackwardGraph>> backward_;
};

}  // namespace teratron::cuda
