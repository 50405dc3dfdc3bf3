// What stands for ops/cuda in a program that is built without the CUDA toolkit.
#include "base/error.h"
#include "ops/backend.h"

namespace teratron {

int cuda_devices() { return 0; }

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& /*options*/) {
  throw_environment_error(
      "this program was built without CUDA, so it has no back end cuda; install the CUDA toolkit (12 or later) and "
      "build it again with cmake -DTERATRON_CUDA=ON, or use --backend cpu");
}

}  // namespace teratron
