// The CUDA back end is a module: a shared library (libteratron_cuda.so) that the program loads when --backend cuda asks
// for it. A program therefore starts, and trains on the CPU, without mapping NVIDIA's libraries, and on machines that
// lack them.
//
// The module links its own copies of base, tensor and ops, all hidden but for one entry function, so it needs nothing
// of the program's symbols. Program and module share libstdc++, libtbb and libfmt: exceptions are matched by the names
// of their types, threads are one pool, memory is one heap. The copies hold no state that both sides use. The caches of
// GEMM algorithms are the module's alone. The scratch memory of CPU kernels is per thread and may exist twice. The
// module draws initial weights with the usual number of threads, whatever --threads says (base/host/threads.h).
#pragma once

#include <filesystem>
#include <span>

#include "ops/backend.h"

namespace teratron {

// Result of the entry function. `interface` stays the first member in every version, so that any program can read it.
struct CudaModule {
  const char* interface;  // kCudaInterface of the headers that the module was compiled with (cuda_interface.cmake)
  int (*devices)();
  Backend* (*make_backend)(const CudaOptions& options);  // the caller owns the result
};

// The only symbol that a module exports: extern "C" const CudaModule* teratron_cuda_module().
using CudaModuleEntry = const CudaModule* (*)();
constexpr const char* kCudaModuleEntry = "teratron_cuda_module";

// Loads the first of `candidates` that exists. EnvironmentError: none exists, it or a library that it needs cannot be
// loaded, or it was compiled with other headers than this program.
const CudaModule& load_cuda_module(std::span<const std::filesystem::path> candidates);

}  // namespace teratron
