// The driver's tensor maps, and how the runtime finds it.
#include <cstring>
#include <string_view>

#include "cuda.h"
#include "cuda_runtime.h"
#include "emulated_gpu/tensor_map.h"

using teratron::emulated::TensorMap;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t axes, void* memory,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 32, kMostStride = std::uint64_t{1} << 40;
  if (axes < 1 || axes > teratron::emulated::kMostTensorAxes) return CUDA_ERROR_INVALID_VALUE;
  TensorMap made{.magic = TensorMap::kMagic,
                 .address = reinterpret_cast<std::uint64_t>(memory),
                 .axes = static_cast<std::uint8_t>(axes),
                 .element_bytes = 2,
                 .swizzle_bits = static_cast<std::uint8_t>(swizzle)};
  bool valid = made.address % 16 == 0;
  for (cuuint32_t axis = 0; axis < axes; ++axis) {
    valid = valid && sizes[axis] >= 1 && sizes[axis] < kMostElements && box[axis] >= 1 && box[axis] <= 256 &&
            steps[axis] == 1;
    made.sizes[axis] = static_cast<std::uint32_t>(sizes[axis]);
    made.box[axis] = static_cast<std::uint16_t>(box[axis]);
    if (axis == 0) continue;
    valid = valid && strides[axis - 1] % 16 == 0 && strides[axis - 1] > 0 && strides[axis - 1] < kMostStride;
    made.strides[axis - 1] = strides[axis - 1];
  }
  valid = valid && box[0] * made.element_bytes == 16U << made.swizzle_bits;
  if (!valid) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(map, &made, sizeof(made));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  const bool is_known = std::string_view(symbol) == "cuTensorMapEncodeTiled";
  *function = is_known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  *found = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
