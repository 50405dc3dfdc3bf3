// A module as the CUDA back end's is, without its back end: tests/ops/cuda_module_test.cc loads it.
#include "base/error.h"
#include "ops/cuda_interface.h"
#include "ops/cuda_module.h"

#ifdef TERATRON_FAKE_DEPENDENCY
extern "C" int teratron_fake_dependency();
#endif

namespace {

int devices() {
#ifdef TERATRON_FAKE_DEPENDENCY
  return teratron_fake_dependency();
#else
  return 7;
#endif
}

teratron::Backend* make_backend(const teratron::CudaOptions& options) {
  if (options.device >= 7) teratron::throw_environment_error("there is no device {}", options.device);
  if (options.compute_dtype == teratron::DType::kF64) teratron::throw_user_error("not in f64");
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const teratron::CudaModule* teratron_cuda_module() {
#ifdef TERATRON_FAKE_INTERFACE
  static const teratron::CudaModule module = {TERATRON_FAKE_INTERFACE, devices, make_backend};
#else
  static const teratron::CudaModule module = {teratron::kCudaInterface.data(), devices, make_backend};
#endif
  return &module;
}
