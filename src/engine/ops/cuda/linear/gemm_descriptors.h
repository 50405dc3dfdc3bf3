// cuBLASLt's descriptors, owned, with its errors as exceptions.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "tensor/tensor.h"

namespace teratron::cuda {

// EnvironmentError that says what failed and why.
inline void require(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_environment_error("cuBLASLt failed: {}: {}", what, cublasLtGetStatusString(status));
}

inline cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return CUDA_R_32F;
    case DType::kBF16: return CUDA_R_16BF;
    case DType::kF16: return CUDA_R_16F;
    default: throw InternalError(fmt::format("matrix products of {} are not made on a GPU", name_of(dtype)));
  }
}

template <class T, cublasStatus_t (*kDestroy)(T)>
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) kDestroy(descriptor_);
  }
  T* address() { return &descriptor_; }
  T get() const { return descriptor_; }

 private:
  T descriptor_ = nullptr;
};
using Operation = Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// The library's matrices are stored column by column: ours, row by row, are their transposes.
inline Layout layout_of(const TensorRef& matrix) {
  Layout layout;
  require(cublasLtMatrixLayoutCreate(layout.address(), type_of(matrix.dtype), static_cast<std::uint64_t>(matrix.dim(1)),
                                     static_cast<std::uint64_t>(matrix.dim(0)), matrix.dim(1)),
          "a matrix");
  return layout;
}

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  require(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)), "an attribute");
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  require(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)), "a preference");
}

}  // namespace teratron::cuda
