// The emulated cuBLASLt and cuBLAS: matrices are stored column by column, sums are in fp32, those of 16-bit values as
// tensor cores make them.
#include "cublas_v2.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "base/float_types.h"
#include "emulated_gpu/cublas_lt_algorithms.h"
#include "emulated_gpu/cublas_lt_sums.h"
#include "ops/cuda/linear/activation.h"

struct EmulatedBlas {
  cudaStream_t stream = nullptr;
};
struct EmulatedLayout {
  cudaDataType_t type;
  std::int64_t rows, columns, stride;
};
struct EmulatedOperation {
  std::map<int, std::vector<std::byte>> attributes;

  template <class T>
  T get(cublasLtMatmulDescAttributes_t attribute, T otherwise) const {
    const auto at = attributes.find(attribute);
    if (at == attributes.end()) return otherwise;
    teratron::check_equal(at->second.size(), sizeof(T), "bytes of an attribute");
    std::memcpy(&otherwise, at->second.data(), sizeof(T));
    return otherwise;
  }
};
struct EmulatedPreference {
  std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
};

namespace teratron::emulated {
namespace {

constexpr std::array<double, kBlasAlgorithms> kMicroseconds = {10, 5, 4, 7, 1, 6};
constexpr double kBestSplitMicroseconds = 2;
thread_local std::array<std::uint64_t, kBlasAlgorithms> products{};
thread_local std::map<cublasLtEpilogue_t, std::uint64_t> products_of_epilogues;
thread_local Refuses refuses = Refuses::kNothing;
thread_local cublasStatus_t refusal = CUBLAS_STATUS_SUCCESS;

// As on a GPU of 16 multiprocessors, with a tile of 64 or 128 values.
float waves_of(const EmulatedLayout& d, const cublasLtMatmulAlgo_t& algorithm) {
  const std::uint64_t parts = std::max<std::uint64_t>(1, algorithm.data[kParts]);
  const auto tile = algorithm.data[kTile] == kLargeTile ? 128 : 64;
  return static_cast<float>(d.rows * d.columns) * static_cast<float>(parts) / static_cast<float>(16 * tile);
}

DType dtype_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? DType::kF32 : type == CUDA_R_16BF ? DType::kBF16 : DType::kF16;
}

float load(const void* values, cudaDataType_t type, std::int64_t i) {
  return visit_floating(dtype_of(type),
                        [&]<class T>(ElementType<T>) { return static_cast<float>(static_cast<const T*>(values)[i]); });
}

void store(void* values, cudaDataType_t type, std::int64_t i, float value) {
  visit_floating(dtype_of(type), [&]<class T>(ElementType<T>) { static_cast<T*>(values)[i] = static_cast<T>(value); });
}

// op(matrix), as numbers.
std::vector<float> values_of(const void* matrix, const EmulatedLayout& layout, bool transpose) {
  std::vector<float> values;
  const std::int64_t rows = transpose ? layout.columns : layout.rows;
  const std::int64_t columns = transpose ? layout.rows : layout.columns;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = transpose ? column + row * layout.stride : row + column * layout.stride;
      values.push_back(load(matrix, layout.type, at));
    }
  }
  return values;
}

bool is_gelu(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

struct Epilogue {
  explicit Epilogue(const EmulatedOperation& operation)
      : kind(operation.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT)),
        vector(operation.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr)),
        aux(operation.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr)),
        vector_type(operation.get(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F)),
        aux_type(operation.get(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, CUDA_R_32F)),
        aux_stride(operation.get<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0)) {}

  bool has_vector() const {
    return kind == CUBLASLT_EPILOGUE_BIAS || kind == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           kind == CUBLASLT_EPILOGUE_BGRADB;
  }
  bool has_aux() const { return is_gelu(kind) || kind == CUBLASLT_EPILOGUE_DGELU; }

  // What is stored for the sum at (row, column).
  float operator()(float sum, std::int64_t row, std::int64_t column) const {
    if (has_vector() && kind != CUBLASLT_EPILOGUE_BGRADB) sum += load(vector, vector_type, row);
    if (!has_aux()) return sum;
    const std::int64_t at = row + column * aux_stride;
    if (!is_gelu(kind)) return sum * cuda::activate<Activation::kGeluTanh>(load(aux, aux_type, at)).slope;
    store(aux, aux_type, at, sum);
    return cuda::activate<Activation::kGeluTanh>(sum).value;
  }

  cublasLtEpilogue_t kind;
  void *vector, *aux;
  cudaDataType_t vector_type, aux_type;
  std::int64_t aux_stride;
};

// What NVIDIA's header says of an epilogue: its vector and its matrix are of the result's type, and columns of the
// latter are multiples of 8 elements apart.
bool is_allowed(const Epilogue& epilogue, const EmulatedLayout& d) {
  if (epilogue.has_vector() && epilogue.vector_type != d.type) return false;
  return !epilogue.has_aux() ||
         (epilogue.aux_type == d.type && epilogue.aux_stride % 8 == 0 && epilogue.aux_stride >= d.rows);
}

// As on a GPU, not for every 16-bit product: here none for those with an epilogue of an odd size, nor for any to one
// row or column.
bool has_algorithms(const Epilogue& epilogue, const EmulatedLayout& a, const EmulatedLayout& d) {
  if (!is_allowed(epilogue, d)) return false;
  if (a.type == CUDA_R_32F) return true;
  if (d.rows == 1 || d.columns == 1) return false;
  return epilogue.kind == CUBLASLT_EPILOGUE_DEFAULT || (d.rows % 2 == 0 && d.columns % 2 == 0);
}

// A kernel may read and write what an epilogue has in pieces of 16 bytes.
bool is_aligned(const Epilogue& epilogue) {
  const auto fits = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0; };
  return fits(epilogue.vector) && fits(epilogue.aux);
}

bool is_refused(const Epilogue& epilogue, Refuses what) {
  return refuses == what && epilogue.kind != CUBLASLT_EPILOGUE_DEFAULT;
}

template <class T>
cublasStatus_t create(T** made, T value) {
  *made = new T(std::move(value));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t destroy(T* made) {
  delete made;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

void refuse_epilogues(Refuses what, cublasStatus_t status) {
  refuses = what;
  refusal = status;
}

std::uint64_t products_by(BlasAlgorithm algorithm) { return products[algorithm]; }
std::uint64_t products_with(cublasLtEpilogue_t epilogue) { return products_of_epilogues[epilogue]; }

double epilogue_microseconds(cublasLtEpilogue_t epilogue, std::int64_t terms) {
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return 0;
  if (is_gelu(epilogue) || epilogue == CUBLASLT_EPILOGUE_DGELU) return terms % 16 == 0 ? 0 : 20;
  if (epilogue == CUBLASLT_EPILOGUE_BIAS) return terms % 24 != 0 ? 0 : 10;
  return terms % 2 == 0 ? 0 : 10;
}

double fp32_microseconds(std::int64_t terms) { return terms % 3 == 0 ? 5 : 0; }

}  // namespace teratron::emulated

using namespace teratron::emulated;  // NOLINT: this is its other half

const char* cublasLtGetStatusString(cublasStatus_t) { return "an emulated error"; }
std::size_t cublasLtGetVersion() { return 130000; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return create(handle, EmulatedBlas{}); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  return create(layout,
                EmulatedLayout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), stride});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t, cudaDataType_t) {
  return create(operation, EmulatedOperation{});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) { return destroy(operation); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(value);
  operation->attributes[attribute].assign(from, from + bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, EmulatedPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) std::memcpy(&preference->schemes, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (is_refused(Epilogue(*operation), Refuses::kChoices)) return refusal;
  if (!has_algorithms(Epilogue(*operation), *a, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (std::uint64_t algorithm = 0; algorithm < kOfferedAlgorithms && *found < most; ++algorithm) {
    const std::uint32_t scheme = scheme_of(algorithm);
    if ((scheme & ~preference->schemes) != 0) continue;
    const cublasLtMatmulAlgo_t made = {{algorithm, scheme}};
    results[(*found)++] = {
        .algo = made, .workspaceSize = 0, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = waves_of(*d, made)};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  if (!has_algorithms(Epilogue(*operation), *a, *d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (algorithm->data[kNumber] >= kBlasAlgorithms || !is_configured(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool splits = algorithm->data[kNumber] == kSplitting;
  if (splits && Epilogue(*operation).kind != CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
  const std::size_t sums = static_cast<std::size_t>(d->rows * d->columns) * algorithm->data[kParts] * sizeof(float);
  *result = {.algo = *algorithm,
             .workspaceSize = splits ? sums : 0,
             .state = CUBLAS_STATUS_SUCCESS,
             .wavesCount = waves_of(*d, *algorithm)};
  return CUBLAS_STATUS_SUCCESS;
}

// A product with all that it was given, which may change when the call has returned.
struct EmulatedProduct {
  EmulatedOperation operation;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  EmulatedLayout a_layout, b_layout, c_layout, d_layout;
  std::uint64_t algorithm;
  std::int64_t parts;  // of the terms
  double microseconds;

  bool a_is_transposed() const { return operation.get(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N) == CUBLAS_OP_T; }
  std::int64_t terms() const { return a_is_transposed() ? a_layout.rows : a_layout.columns; }
  void run() const;
};

void EmulatedProduct::run() const {
  const bool a_transposed = a_is_transposed();
  const bool b_transposed = operation.get(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) == CUBLAS_OP_T;
  const std::int64_t rows = d_layout.rows, columns = d_layout.columns;
  const std::int64_t terms = this->terms();
  teratron::check(alpha == 1, "products are not scaled");
  teratron::check_equal(a_transposed ? a_layout.columns : a_layout.rows, rows, "rows of a product");
  teratron::check_equal(b_transposed ? b_layout.rows : b_layout.columns, columns, "columns of a product");
  teratron::check_equal(b_transposed ? b_layout.columns : b_layout.rows, terms, "terms of a product");
  const std::vector<float> left = values_of(a, a_layout, a_transposed), right = values_of(b, b_layout, b_transposed);
  const auto add = a_layout.type == CUDA_R_32F ? add_terms : add_terms_in_tensor_cores;
  const Epilogue finish(operation);
  const bool adds = beta == 1;
  std::vector<float> sums(static_cast<std::size_t>(columns)), sums_of_part(sums.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      sums[static_cast<std::size_t>(column)] = adds ? load(c, c_layout.type, row + column * c_layout.stride) : 0;
    }
    const Terms all = {.left = left.data() + row * terms,
                       .right = right.data(),
                       .begin = 0,
                       .end = terms,
                       .columns = columns,
                       .from_first = parts > 1 || algorithm == kUsual};
    if (parts == 1) add(all, sums);
    for (std::int64_t part = 0; parts > 1 && part < parts; ++part) {
      Terms of_part = all;
      of_part.begin = terms * part / parts;
      of_part.end = terms * (part + 1) / parts;
      std::fill(sums_of_part.begin(), sums_of_part.end(), 0.0F);
      add(of_part, sums_of_part);
      std::transform(sums.begin(), sums.end(), sums_of_part.begin(), sums.begin(), std::plus<>());
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      const float sum = sums[static_cast<std::size_t>(column)];
      store(d, d_layout.type, row + column * d_layout.stride, finish(sum, row, column));
    }
  }
  if (finish.kind != CUBLASLT_EPILOGUE_BGRADB) return;
  const std::vector<float> ones(static_cast<std::size_t>(terms), 1);
  std::fill(sums.begin(), sums.end(), 0.0F);
  add_terms_in_tensor_cores({.left = ones.data(),
                             .right = right.data(),
                             .begin = 0,
                             .end = terms,
                             .columns = columns,
                             .from_first = algorithm == kUsual},
                            sums);
  for (std::int64_t column = 0; column < columns; ++column) {
    store(finish.vector, finish.vector_type, column, sums[static_cast<std::size_t>(column)]);
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void*,
                              std::size_t, cudaStream_t stream) {
  const std::uint64_t number = algorithm->data[kNumber];
  if (number >= kBlasAlgorithms || !is_configured(*algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool is_best_split =
      number == kSplitting && algorithm->data[kParts] == kBestParts && algorithm->data[kTile] == kBestTile;
  const Epilogue epilogue(*operation);
  ++products[number];
  ++products_of_epilogues[epilogue.kind];
  if (is_refused(epilogue, Refuses::kStarts)) return refusal;
  if (number == kFailing) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!is_allowed(epilogue, *d_layout)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_aligned(epilogue)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const EmulatedProduct product{.operation = *operation,
                                .alpha = *static_cast<const float*>(alpha),
                                .beta = *static_cast<const float*>(beta),
                                .a = a,
                                .b = b,
                                .c = c,
                                .d = d,
                                .a_layout = *a_layout,
                                .b_layout = *b_layout,
                                .c_layout = *c_layout,
                                .d_layout = *d_layout,
                                .algorithm = number,
                                .parts = number == kSplitting ? static_cast<std::int64_t>(algorithm->data[kParts]) : 1,
                                .microseconds = is_best_split ? kBestSplitMicroseconds : kMicroseconds[number]};
  queue(stream, [product] {
    const bool is_widened = product.a_layout.type != CUDA_R_32F && product.d_layout.type == CUDA_R_32F;
    pass_time(product.microseconds + epilogue_microseconds(Epilogue(product.operation).kind, product.terms()) +
              (is_widened ? fp32_microseconds(product.terms()) : 0));
    product.run();
    return cudaSuccess;
  });
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) { return cublasLtCreate(handle); }
cublasStatus_t cublasDestroy(cublasHandle_t handle) { return cublasLtDestroy(handle); }
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType_t a_type, int a_stride,
                            const void* b, cudaDataType_t b_type, int b_stride, const void* beta, void* c,
                            cudaDataType_t c_type, int c_stride, cublasComputeType_t, cublasGemmAlgo_t) {
  EmulatedOperation operation;
  cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a, sizeof(transpose_a));
  cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b, sizeof(transpose_b));
  const auto layout = [](cudaDataType_t type, cublasOperation_t transpose, int rows, int columns, int stride) {
    return transpose == CUBLAS_OP_T ? EmulatedLayout{type, columns, rows, stride}
                                    : EmulatedLayout{type, rows, columns, stride};
  };
  EmulatedLayout a_layout = layout(a_type, transpose_a, m, k, a_stride),
                 b_layout = layout(b_type, transpose_b, k, n, b_stride),
                 c_layout = layout(c_type, CUBLAS_OP_N, m, n, c_stride);
  const cublasLtMatmulAlgo_t usual = {{kUsual}};
  return cublasLtMatmul(handle, &operation, alpha, a, &a_layout, b, &b_layout, beta, c, &c_layout, c, &c_layout, &usual,
                        nullptr, 0, handle->stream);
}
