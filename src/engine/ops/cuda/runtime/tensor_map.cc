#include "ops/cuda/runtime/tensor_map.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

// The driver's function, which the program does not link to. Null: an older driver.
auto encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;  // the first with tensor maps
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kVersion, cudaEnableDefault, &found),
          "the driver's function for tensor maps");
#else
  require(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found),
          "the driver's function for tensor maps");
#endif
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function) : nullptr;
}

}  // namespace

CUtensorMap tensor_map_of(const TensorRef& view, int rows, int columns) {
  constexpr cuuint32_t kAxes = 4;
  static const auto encode = encode_function();
  if (encode == nullptr) {
    throw_environment_error("the NVIDIA driver has no tensor maps; update it, or use --hopper-attention off");
  }
  const auto bytes = static_cast<cuuint64_t>(size_of(view.dtype));
  std::array<cuuint64_t, kAxes> sizes;
  std::array<cuuint64_t, kAxes - 1> strides;  // in bytes, of all axes but the fastest
  for (int axis = 0; axis < 4; ++axis) {
    const int of_view = axis == 0 ? 3 : axis == 1 ? 2 : axis == 2 ? 1 : 0;
    sizes.at(static_cast<std::size_t>(axis)) = static_cast<cuuint64_t>(view.dim(of_view));
    if (axis == 0) continue;
    // An axis of one element is never stepped along, and its stride may be anything, which a map must not be.
    strides.at(static_cast<std::size_t>(axis) - 1) =
        view.dim(of_view) > 1 ? static_cast<cuuint64_t>(view.stride(of_view)) * bytes : 16;
  }
  const std::array<cuuint32_t, kAxes> box = {static_cast<cuuint32_t>(columns), 1, static_cast<cuuint32_t>(rows), 1},
                                      steps = {1, 1, 1, 1};
  CUtensorMap map = {};
  const CUresult status =
      encode(&map, view.dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
             kAxes, view.data, sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
             columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw_environment_error("the NVIDIA driver refuses a tensor map of [{}, {}, {}, {}] (error {})", view.dim(0),
                            view.dim(1), view.dim(2), view.dim(3), static_cast<int>(status));
  }
  return map;
}

}  // namespace teratron::cuda
