// Attention by cuDNN for the calls that it supports, as CudaOptions::cudnn_attention says. Its algorithms that repeat
// bit by bit are asked for. On Hopper the backward one stores a matrix of S_q x S_k for each head, so calls that need a
// workspace of more than a twentieth of the device's memory are left to our own kernels.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class CudnnAttention {
 public:
  // Runs on that stream of the current device. EnvironmentError where the program was built without cuDNN, or it cannot
  // be loaded, is too old, or does not start.
  CudnnAttention(cudaStream_t stream, const cudaDeviceProp& device, bool reports);
  ~CudnnAttention();

  // False: nothing was computed, and the caller uses our own kernels. That is so for calls that takes_cudnn() excludes,
  // and for shapes without cuDNN kernels on this device; if `reports`, the first such shape is reported on standard
  // error.
  bool forward(const AttentionForward& args, Scratch& scratch);
  bool backward(const AttentionBackward& args, Scratch& scratch);

 private:
  class Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace teratron::cuda
