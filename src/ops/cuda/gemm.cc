#include "ops/cuda/gemm.h"

#include <cublasLt.h>

#include <tuple>

#include "base/error.h"
#include "ops/cuda/device.h"

namespace teratron::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // bytes; what the library asks for on Hopper

void require(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_environment_error("cuBLASLt failed: {}: {}", what, cublasLtGetStatusString(status));
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return CUDA_R_32F;
    case DType::kBF16: return CUDA_R_16BF;
    case DType::kF16: return CUDA_R_16F;
    default: throw InternalError(fmt::format("matrix products of {} are not made on a GPU", name_of(dtype)));
  }
}

// Owns one of the library's descriptors.
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
Layout layout_of(const TensorRef& matrix) {
  Layout layout;
  require(cublasLtMatrixLayoutCreate(layout.address(), type_of(matrix.dtype), static_cast<std::uint64_t>(matrix.dim(1)),
                                     static_cast<std::uint64_t>(matrix.dim(0)), matrix.dim(1)),
          "a matrix");
  return layout;
}

// The largest power of two, up to 256, that divides where a matrix begins.
std::uint32_t alignment_of(const TensorRef& matrix) {
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.data);
  const std::uintptr_t lowest = address & (~address + 1);
  return static_cast<std::uint32_t>(lowest == 0 || lowest > 256 ? 256 : lowest);
}

// All that the way to multiply hangs on.
using Key = std::tuple<DType, DType, std::int64_t, std::int64_t, std::int64_t, bool, bool, bool, bool, bool,
                       std::uint32_t, std::uint32_t, std::uint32_t>;

Key key_of(const Product& product) {
  return {product.c.dtype,
          product.a.dtype,
          product.c.dim(0),
          product.c.dim(1),
          product.a.dim(product.transpose_a ? 0 : 1),
          product.transpose_a,
          product.transpose_b,
          product.accumulate,
          static_cast<bool>(product.bias),
          static_cast<bool>(product.gelu_input),
          alignment_of(product.a),
          alignment_of(product.b),
          alignment_of(product.c)};
}

struct Plan {
  Operation operation;
  Layout c, a, b;
  cublasLtMatmulAlgo_t algorithm = {};
};

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  require(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)), "an attribute");
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  require(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)), "a preference");
}

}  // namespace

struct Gemm::Library {
  cudaStream_t stream;
  cublasComputeType_t compute;
  cublasLtHandle_t handle = nullptr;
  Scratch workspace;
  std::map<Key, Plan> plans;

  Plan make_plan(const Product& product);
};

bool takes_gelu_gradient(const Product& product) {
  const auto fits = [](const TensorRef& matrix) {
    return alignment_of(matrix) >= 16 && matrix.dim(1) * size_of(matrix.dtype) % 16 == 0;
  };
  return product.a.dtype != DType::kF32 && fits(product.a) && fits(product.b) && fits(product.c) &&
         fits(product.gelu_input);
}

Gemm::Gemm(cudaStream_t stream, bool tf32) : library_(std::make_unique<Library>()) {
  library_->stream = stream;
  library_->compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  require(cublasLtCreate(&library_->handle), "its start");
}

Gemm::~Gemm() { cublasLtDestroy(library_->handle); }

Plan Gemm::Library::make_plan(const Product& product) {
  Plan plan{.c = layout_of(product.c), .a = layout_of(product.a), .b = layout_of(product.b)};
  const cublasComputeType_t type = product.a.dtype == DType::kF32 ? compute : CUBLAS_COMPUTE_32F;
  require(cublasLtMatmulDescCreate(plan.operation.address(), type, CUDA_R_32F), "a product");
  // c' = op(b)' op(a)' in the library's eyes.
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (product.gelu_input) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.gelu_input.data);
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.gelu_input.dim(1));
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE,
        static_cast<std::int32_t>(type_of(product.gelu_input.dtype)));
  }
  if (product.bias) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.data);
    set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(product.bias.dtype)));
  }
  Preference preference;
  require(cublasLtMatmulPreferenceCreate(preference.address()), "preferences");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product.b));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product.a));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(product.c));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(product.c));
  // Sums in place are added in the order in which blocks happen to end.
  const std::uint32_t repeatable = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, repeatable);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  require(cublasLtMatmulAlgoGetHeuristic(handle, plan.operation.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                         plan.c.get(), preference.get(), 1, &best, &found),
          "the choice of an algorithm");
  if (found == 0) {
    throw_environment_error("cuBLASLt has no algorithm for a product of {} and {} to {} in {}", product.a.shape,
                            product.b.shape, product.c.shape, name_of(product.a.dtype));
  }
  plan.algorithm = best.algo;
  return plan;
}

void Gemm::multiply(const Product& product) {
  const Key key = key_of(product);
  auto found = library_->plans.find(key);
  if (found == library_->plans.end()) found = library_->plans.emplace(key, library_->make_plan(product)).first;
  const Plan& plan = found->second;
  if (product.bias) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias.data);
  if (product.gelu_input) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, product.gelu_input.data);
  }
  const float alpha = 1, beta = product.accumulate ? 1.0F : 0.0F;
  require(
      cublasLtMatmul(library_->handle, plan.operation.get(), &alpha, product.b.data, plan.b.get(), product.a.data,
                     plan.a.get(), &beta, product.c.data, plan.c.get(), product.c.data, plan.c.get(), &plan.algorithm,
                     library_->workspace.bytes(static_cast<std::int64_t>(kWorkspace)), kWorkspace, library_->stream),
      "a product");
}

}  // namespace teratron::cuda
