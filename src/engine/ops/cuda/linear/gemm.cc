#include "ops/cuda/linear/gemm.h"

#include <cublas_v2.h>

#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "ops/algorithms/algorithm_choice.h"
#include "ops/cuda/linear/split_terms.h"
#include "ops/cuda/linear/timing.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // bytes; the library's advice for Hopper
constexpr int kCandidates = 64;                            // of the library's choice, and as many that split the terms
// Products of so many terms whose result fills the device so often at most are also tried with their terms split.
constexpr std::int64_t kFewestTermsToSplit = 1024;
constexpr float kMostWavesToSplit = 4;
// Sums in place would be added in the order in which blocks happen to end.
constexpr std::uint32_t kRepeatable = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

// Algorithms restored from bytes are of the same device and version of the library, which the cache's key names.
std::string machine_text(std::string_view device) {
  int driver = 0;
  require(cudaDriverGetVersion(&driver), "the driver's version");
  return fmt::format("{}, driver {}, cuBLASLt {}", device, driver, cublasLtGetVersion());
}

struct Plan {
  Operation operation;
  Layout c, a, b;
  std::optional<cublasLtMatmulAlgo_t> algorithm;  // absent: the library has none
};

cublasComputeType_t compute_type(bool tf32) { return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F; }

// c' = op(b)' op(a)' in the library's eyes: columns of its result are rows of ours, and its B is our a.
cublasLtEpilogue_t epilogue_of(const Product& product) {
  if (product.before_gelu) return product.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (product.gelu_input) return CUBLASLT_EPILOGUE_DGELU;
  if (product.bias_gradient) return CUBLASLT_EPILOGUE_BGRADB;
  return product.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// Operands of an epilogue: the vector with an element for each row or column, and the matrix of c's shape.
const TensorRef& vector_of(const Product& product) { return product.bias ? product.bias : product.bias_gradient; }
const TensorRef& matrix_of(const Product& product) {
  return product.before_gelu ? product.before_gelu : product.gelu_input;
}

void point_at_epilogue(const Operation& operation, const Product& product) {
  if (const TensorRef& vector = vector_of(product)) {
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector.data);
  }
  if (const TensorRef& matrix = matrix_of(product)) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, matrix.data);
  }
}

void describe(const Operation& operation, const Product& product) {
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(product));
  if (const TensorRef& vector = vector_of(product)) {
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(vector.dtype)));
  }
  if (const TensorRef& matrix = matrix_of(product)) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, matrix.dim(1));
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, static_cast<std::int32_t>(type_of(matrix.dtype)));
  }
  point_at_epilogue(operation, product);
}

Preference preference_for(const MatrixProductKey& key) {
  Preference preference;
  require(cublasLtMatmulPreferenceCreate(preference.address()), "preferences");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kRepeatable);
  return preference;
}

// Whether the library says that it does not do that. It calls an epilogue that a device lacks invalid rather than not
// supported, sometimes.
bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH;
}

bool sums_repeat(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t scheme = 0;
  std::size_t written = 0;
  return cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                              sizeof(scheme), &written) == CUBLAS_STATUS_SUCCESS &&
         (scheme & ~kRepeatable) == 0;
}

}  // namespace

struct Gemm::Library {
  class Trial;

  Library(cudaStream_t own_stream, MemoryMeter* meter) : stream(own_stream), workspace(own_stream, meter) {}

  cudaStream_t stream;
  bool tf32 = false;
  std::shared_ptr<AlgorithmCache> cache;  // null: the library's first choice
  double timed_from = 0;
  cublasLtHandle_t handle = nullptr;
  cublasHandle_t plain_handle = nullptr;  // from the first product that cuBLASLt has no algorithm for
  Scratch workspace;
  std::map<MatrixProductKey, Plan> plans;
  std::map<std::pair<MatrixProductKey, std::string>, Fusion> fusions;  // of a product and its passes

  bool times(const Product& product) const { return cache && product.multiply_adds() >= timed_from; }
  Plan make_plan(const Product& product, const MatrixProductKey& key);
  Plan& plan_for(const Product& product);
  // The best first; none where the library has none.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(const Plan& plan, const Product& product, int most) const;
  std::vector<cublasLtMatmulAlgo_t> split(const Plan& plan, const Product& product) const;
  cublasStatus_t start(const Plan& plan, const Product& product, const cublasLtMatmulAlgo_t& algorithm, void* c);
  bool try_plan(Plan& plan, const Product& product);  // false: the library has no algorithm, or refuses the product
  void multiply_plainly(const Product& product);
};

namespace {

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(AlgorithmBytes));
AlgorithmBytes bytes_of(const cublasLtMatmulAlgo_t& algorithm) { return std::bit_cast<AlgorithmBytes>(algorithm); }
cublasLtMatmulAlgo_t algorithm_of(const AlgorithmBytes& bytes) { return std::bit_cast<cublasLtMatmulAlgo_t>(bytes); }

}  // namespace

// Times products with their own inputs. They write to the result, which the call then computes again, or to memory of
// their own where the old values are still needed.
class Gemm::Library::Trial final : public AlgorithmTrial {
 public:
  Trial(Library& library, const Plan& plan, const Product& product)
      : library_(library), plan_(plan), product_(product) {}

  // One only, which is not timed, where there is no memory to time in.
  std::vector<AlgorithmBytes> candidates() override {
    c_ = product_.can_be_repeated() ? product_.c.data : spare_c();
    std::vector<AlgorithmBytes> result;
    const auto offered = library_.algorithms(plan_, product_, c_ == nullptr ? 1 : kCandidates);
    for (const cublasLtMatmulHeuristicResult_t& one : offered) result.push_back(bytes_of(one.algo));
    const bool may_split = c_ != nullptr && !offered.empty() && offered.front().wavesCount <= kMostWavesToSplit &&
                           product_.terms() >= kFewestTermsToSplit;
    if (!may_split) return result;
    for (const cublasLtMatmulAlgo_t& one : library_.split(plan_, product_)) result.push_back(bytes_of(one));
    return result;
  }

  bool can_use(const AlgorithmBytes& bytes) override {
    const cublasLtMatmulAlgo_t algorithm = algorithm_of(bytes);
    cublasLtMatmulHeuristicResult_t result = {};
    return cublasLtMatmulAlgoCheck(library_.handle, plan_.operation.get(), plan_.b.get(), plan_.a.get(), plan_.c.get(),
                                   plan_.c.get(), &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
           result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= kWorkspace && sums_repeat(algorithm);
  }

  std::optional<double> time(const AlgorithmBytes& bytes) override {
    return microseconds_of(library_.stream, [this, algorithm = algorithm_of(bytes)] {
      return library_.start(plan_, product_, algorithm, c_) == CUBLAS_STATUS_SUCCESS;
    });
  }

 private:
  void* spare_c() {
    try {
      void* const memory = spare_.bytes(product_.c.bytes());
      require(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(product_.c.bytes()), library_.stream), "zeros");
      return memory;
    } catch (const EnvironmentError&) {
      cudaGetLastError();  // and forget it
      return nullptr;
    }
  }

  Library& library_;
  const Plan& plan_;
  const Product& product_;
  Scratch spare_{library_.stream};
  void* c_ = nullptr;
};

namespace {

// Whether the operands of an epilogue are aligned for any kernel: the library's preferences do not cover them. The
// library wants the rows of before_gelu and gelu_input to be multiples of 8 elements long. It rounds
// 16-bit products of other rows before it adds the bias (seen on an H100). All but the bias is for 16-bit inputs: TF32
// would round the terms of a bias gradient.
bool takes_epilogue(const Product& product) {
  if (vector_of(product) && alignment_of(vector_of(product)) < 16) return false;
  if (product.a.dtype == DType::kF32) return product.bias && !product.before_gelu;
  const TensorRef& matrix = matrix_of(product);
  const auto fits = [](const TensorRef& view) {
    return alignment_of(view) >= 16 && view.dim(1) * size_of(view.dtype) % 16 == 0;
  };
  return fits(product.a) && fits(product.b) && fits(product.c) && (!matrix || fits(matrix));
}

}  // namespace

Gemm::Gemm(cudaStream_t stream, const GemmOptions& options, MemoryMeter* meter)
    : library_(std::make_unique<Library>(stream, meter)) {
  library_->tf32 = options.tf32;
  library_->timed_from = options.timed_from;
  if (options.timing) library_->cache = algorithm_cache_of(machine_text(options.device));
  require(cublasLtCreate(&library_->handle), "its start");
  library_->workspace.bytes(static_cast<std::int64_t>(kWorkspace));  // before anyone asks how much is left
}

Gemm::~Gemm() {
  cublasLtDestroy(library_->handle);
  if (library_->plain_handle != nullptr) cublasDestroy(library_->plain_handle);
}

std::vector<cublasLtMatmulHeuristicResult_t> Gemm::Library::algorithms(const Plan& plan, const Product& product,
                                                                       int most) const {
  const Preference preference = preference_for(key_of(product, tf32));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, plan.operation.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                     plan.c.get(), preference.get(), most, results.data(), &found);
  if (is_refusal(status)) return {};
  require(status, "the choice of an algorithm");
  results.resize(static_cast<std::size_t>(found));
  std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

std::vector<cublasLtMatmulAlgo_t> Gemm::Library::split(const Plan& plan, const Product& product) const {
  const DescribedProduct described{.handle = handle,
                                   .operation = plan.operation.get(),
                                   .a = plan.b.get(),
                                   .b = plan.a.get(),
                                   .c = plan.c.get(),
                                   .compute = compute_type(key_of(product, tf32).tf32),
                                   .a_type = type_of(product.b.dtype),
                                   .b_type = type_of(product.a.dtype),
                                   .c_type = type_of(product.c.dtype),
                                   .workspace = kWorkspace};
  return algorithms_that_split(described, kCandidates);
}

cublasStatus_t Gemm::Library::start(const Plan& plan, const Product& product, const cublasLtMatmulAlgo_t& algorithm,
                                    void* c) {
  const float alpha = 1, beta = product.accumulate ? 1.0F : 0.0F;
  return cublasLtMatmul(handle, plan.operation.get(), &alpha, product.b.data, plan.b.get(), product.a.data,
                        plan.a.get(), &beta, c, plan.c.get(), c, plan.c.get(), &algorithm,
                        workspace.bytes(static_cast<std::int64_t>(kWorkspace)), kWorkspace, stream);
}

bool Gemm::Library::try_plan(Plan& plan, const Product& product) {
  if (!plan.algorithm) return false;
  const cublasStatus_t status = start(plan, product, *plan.algorithm, product.c.data);
  if (is_refusal(status)) {
    plan.algorithm.reset();
    return false;
  }
  require(status, "a product");
  return true;
}

Plan Gemm::Library::make_plan(const Product& product, const MatrixProductKey& key) {
  Plan plan{.c = layout_of(product.c), .a = layout_of(product.a), .b = layout_of(product.b)};
  require(cublasLtMatmulDescCreate(plan.operation.address(), compute_type(key.tf32), CUDA_R_32F), "a product");
  describe(plan.operation, product);
  const std::vector<cublasLtMatmulHeuristicResult_t> first = algorithms(plan, product, 1);
  if (first.empty()) return plan;
  plan.algorithm = first.front().algo;
  if (times(product)) {
    Trial trial(*this, plan, product);
    plan.algorithm = algorithm_of(choose_algorithm(text_of(key), trial, *cache));
  }
  return plan;
}

Plan& Gemm::Library::plan_for(const Product& product) {
  const MatrixProductKey key = key_of(product, tf32);
  auto found = plans.find(key);
  if (found == plans.end()) found = plans.emplace(key, make_plan(product, key)).first;
  return found->second;
}

// By cuBLAS, which takes every shape and alignment.
void Gemm::Library::multiply_plainly(const Product& product) {
  if (plain_handle == nullptr) {
    require(cublasCreate(&plain_handle), "its start");
    require(cublasSetStream(plain_handle, stream), "its stream");
    require(cublasSetWorkspace(plain_handle, workspace.bytes(static_cast<std::int64_t>(kWorkspace)), kWorkspace),
            "its workspace");
  }
  const float alpha = 1, beta = product.accumulate ? 1.0F : 0.0F;
  const auto extent = [](std::int64_t value) { return static_cast<int>(value); };
  const cudaDataType_t type = type_of(product.a.dtype);
  require(
      cublasGemmEx(plain_handle, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                   product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, extent(product.c.dim(1)), extent(product.c.dim(0)),
                   extent(product.terms()), &alpha, product.b.data, type, extent(product.b.dim(1)), product.a.data,
                   type, extent(product.a.dim(1)), &beta, product.c.data, type_of(product.c.dtype),
                   extent(product.c.dim(1)), compute_type(tf32 && type == CUDA_R_32F), CUBLAS_GEMM_DEFAULT),
      "a product");
}

void Gemm::multiply(const Product& product) {
  check(product.is_plain(), "a plain product");
  if (!library_->try_plan(library_->plan_for(product), product)) library_->multiply_plainly(product);
}

bool Gemm::can_fuse(const Product& product) {
  return takes_epilogue(product) && library_->plan_for(product).algorithm.has_value();
}

bool Gemm::try_fused(const Product& product) {
  if (!takes_epilogue(product)) return false;
  Plan& plan = library_->plan_for(product);
  point_at_epilogue(plan.operation, product);
  return library_->try_plan(plan, product);
}

Fusion Gemm::choose(const Product& whole, FusibleOperation& operation) {
  if (operation.fusions().size() == 1 || !library_->times(whole)) return operation.fusions().front();
  const std::pair key(key_of(whole, library_->tf32), operation.passes());
  const auto found = library_->fusions.find(key);
  if (found != library_->fusions.end()) return found->second;
  const std::string text = fmt::format("fusion{}: {}", key.second, text_of(key.first));
  const Fusion chosen = choose_fusion(text, library_->stream, operation, *library_->cache);
  return library_->fusions.emplace(key, chosen).first->second;
}

}  // namespace teratron::cuda
