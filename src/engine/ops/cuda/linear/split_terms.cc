#include "ops/cuda/linear/split_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace teratron::cuda {
namespace {

constexpr std::array<std::int32_t, 5> kSplits = {2, 3, 4, 6, 8};
constexpr float kMostWaves = 4;
constexpr int kMostIds = 256;
constexpr std::uint32_t kUndefined = 0;  // CUBLASLT_MATMUL_TILE_UNDEFINED, CUBLASLT_MATMUL_STAGES_UNDEFINED

// 0 where the algorithm does not say.
template <class T>
T capability(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute) {
  T value = 0;
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoCapGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS && written == sizeof(value) ? value : 0;
}

std::vector<std::uint32_t> choices(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoCapAttributes_t attribute) {
  std::size_t bytes = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&algorithm, attribute, nullptr, 0, &bytes) != CUBLAS_STATUS_SUCCESS) bytes = 0;
  std::vector<std::uint32_t> values(bytes / sizeof(std::uint32_t));
  if (values.empty()) return {kUndefined};
  require(cublasLtMatmulAlgoCapGetAttribute(&algorithm, attribute, values.data(), bytes, &bytes), "an algorithm");
  return values;
}

template <class T>
bool configure(cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute, T value) {
  return cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &value, sizeof(value)) == CUBLAS_STATUS_SUCCESS;
}

struct Candidate {
  cublasLtMatmulAlgo_t algorithm;
  float use;  // of the waves that it takes, the share in which multiprocessors work
};

class Candidates {
 public:
  explicit Candidates(const DescribedProduct& product) : product_(product) {}

  // All ways to split that kind of algorithm which the library allows for the product.
  void add_kind(int id) {
    cublasLtMatmulAlgo_t kind = {};
    if (cublasLtMatmulAlgoInit(product_.handle, product_.compute, CUDA_R_32F, product_.a_type, product_.b_type,
                               product_.c_type, product_.c_type, id, &kind) != CUBLAS_STATUS_SUCCESS) {
      return;
    }
    const auto schemes = capability<std::uint32_t>(kind, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK);
    if (capability<std::int32_t>(kind, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) == 0) return;
    if ((schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) == 0) return;
    const std::vector<std::uint32_t> stages = choices(kind, CUBLASLT_ALGO_CAP_STAGES_IDS);
    for (const std::uint32_t tile : choices(kind, CUBLASLT_ALGO_CAP_TILE_IDS)) {
      for (const std::uint32_t stage : stages) {
        for (const std::int32_t parts : kSplits) add(kind, tile, stage, parts);
      }
    }
  }

  std::vector<cublasLtMatmulAlgo_t> best(std::size_t most) {
    std::ranges::stable_sort(found_, std::ranges::greater(), &Candidate::use);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (const Candidate& candidate : found_) {
      if (algorithms.size() < most) algorithms.push_back(candidate.algorithm);
    }
    return algorithms;
  }

 private:
  void add(cublasLtMatmulAlgo_t algorithm, std::uint32_t tile, std::uint32_t stage, std::int32_t parts) {
    const std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const bool is_set = configure(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, tile) &&
                        configure(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, stage) &&
                        configure(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, parts) &&
                        configure(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme);
    cublasLtMatmulHeuristicResult_t result = {};
    if (!is_set || cublasLtMatmulAlgoCheck(product_.handle, product_.operation, product_.a, product_.b, product_.c,
                                           product_.c, &algorithm, &result) != CUBLAS_STATUS_SUCCESS) {
      return;
    }
    const float waves = result.wavesCount;
    if (result.workspaceSize > product_.workspace || waves <= 0 || waves > kMostWaves) return;
    found_.push_back({algorithm, waves / std::ceil(waves)});
  }

  const DescribedProduct& product_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<cublasLtMatmulAlgo_t> algorithms_that_split(const DescribedProduct& product, std::size_t most) {
  std::array<int, kMostIds> ids = {};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetIds(product.handle, product.compute, CUDA_R_32F, product.a_type, product.b_type,
                               product.c_type, product.c_type, kMostIds, ids.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return {};
  Candidates candidates(product);
  for (int i = 0; i < count; ++i) candidates.add_kind(ids[static_cast<std::size_t>(i)]);
  return candidates.best(most);
}

}  // namespace teratron::cuda
