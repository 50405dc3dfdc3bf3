// The entry of the CUDA module (ops/cuda_module.h).
#include "ops/cuda_module.h"

#include "ops/cuda_interface.h"

extern "C" __attribute__((visibility("default"))) const teratron::CudaModule* teratron_cuda_module() {
  static const teratron::CudaModule module = {
      .interface = teratron::kCudaInterface.data(),
      .devices = teratron::cuda_devices,
      .make_backend =
          [](const teratron::CudaOptions& options) { return teratron::make_cuda_backend(options).release(); },
  };
  return &module;
}
