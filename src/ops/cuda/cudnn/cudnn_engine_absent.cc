// What stands for cudnn_engine.cc in a program that is built with CUDA but without cuDNN.
#include "base/error.h"
#include "ops/cuda/cudnn/cudnn_engine.h"

namespace teratron::cuda {

struct CudnnEngine::Library {};
struct CudnnEngine::Plan {};

CudnnEngine::CudnnEngine(cudaStream_t /*stream*/) {
  throw_environment_error(
      "this program was built without cuDNN, so it has no attention of cuDNN's; install its headers (version 9) and "
      "build it again, or leave out --cudnn-attention");
}

CudnnEngine::~CudnnEngine() = default;

std::shared_ptr<const CudnnEngine::Plan> CudnnEngine::plan(const Graph& /*graph*/) { return nullptr; }

std::int64_t CudnnEngine::workspace_bytes(const Plan& /*plan*/) { return 0; }

void CudnnEngine::run(const Plan& /*plan*/, std::span<const Binding> /*bindings*/, void* /*workspace*/) {}

}  // namespace teratron::cuda
