// Attention by cuDNN for the calls that it supports, if CudaOptions::cudnn_attention is set. It has never run on a GPU.
// cuDNN adds the parts of dQ in the order in which blocks finish, so the backward pass does not repeat bit by bit.
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

  // False: nothing was computed, and the caller uses our own kernels. That is so for calls that takes_cudnn() excludes,
  // and for shapes without cuDNN kernels on this device; the first such shape is reported on standard error.
  bool forward(const AttentionForward& args, Scratch& scratch);
  bool backward(const AttentionBackward& args, Scratch& scratch);

 private:
  // Everything that a graph depends on: sizes, strides, type, mask, scale.
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
