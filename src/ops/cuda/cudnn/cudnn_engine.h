// Runs graphs on the device, by cuDNN. cudnn_engine_absent.cc stands for it in a program that is built without cuDNN;
// tests/emulated_gpu has another cudnn_engine.cc that computes graphs with loops.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "ops/cuda/cudnn/cudnn_graph.h"

namespace teratron::cuda {

// Where a tensor of a graph lies that is of kMemory, in device memory.
struct Binding {
  TensorId tensor;
  void* memory;
};

class CudnnEngine {
 public:
  struct Plan;  // the kernels chosen for a graph

  // Runs on that stream of the current device. EnvironmentError where the program was built without cuDNN, or it cannot
  // be loaded, is too old, or does not start.
  explicit CudnnEngine(cudaStream_t stream);
  ~CudnnEngine();

  // Slow, and part of the library: plans are to be kept. EnvironmentError where it has no kernels for the graph.
  std::shared_ptr<const Plan> plan(const Graph& graph);
  // Device memory that a run needs for itself, undefined before and after, aligned to 256 bytes.
  static std::int64_t workspace_bytes(const Plan& plan);
  // Queued on the stream. Every tensor of kMemory is bound once.
  void run(const Plan& plan, std::span<const Binding> bindings, void* workspace);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace teratron::cuda
