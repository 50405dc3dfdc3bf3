// Replaces cudnn_attention.cc in a build with CUDA but without cuDNN or cudnn-frontend.
#include "base/error.h"
#include "ops/cuda/cudnn/cudnn_attention.h"

namespace teratron::cuda {

class CudnnAttention::Plans {};

CudnnAttention::CudnnAttention(cudaStream_t /*stream*/, const cudaDeviceProp& /*device*/, bool /*reports*/) {
  throw_environment_error(
      "this program was built without cuDNN, so it has no attention of cuDNN's; install cuDNN's headers (version 9), "
      "run scripts/cudnn-frontend and build again, or leave out --cudnn-attention on");
}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::forward(const AttentionForward& /*args*/, Scratch& /*scratch*/) { return false; }
bool CudnnAttention::backward(const AttentionBackward& /*args*/, Scratch& /*scratch*/) { return false; }

}  // namespace teratron::cuda
