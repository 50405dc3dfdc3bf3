// Algorithms of the emulated cuBLASLt: properties, and how they are configured.
#include "emulated_gpu/cublas_lt_algorithms.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace teratron::emulated {
namespace {

constexpr std::int32_t kMostParts = 6;
thread_local std::uint64_t checks_of_splits = 0;

}  // namespace

std::uint64_t split_checks() { return checks_of_splits; }

bool is_configured(const cublasLtMatmulAlgo_t& algorithm) {
  if (algorithm.data[kNumber] != kSplitting) return true;
  ++checks_of_splits;
  const auto& [number, scheme, parts, tile, stages, a, b, c] = algorithm.data;
  return scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE && parts >= 2 && parts <= kMostParts &&
         (tile == kSmallTile || tile == kLargeTile) && stages == 1;
}

std::uint32_t scheme_of(std::uint64_t algorithm) {
  return algorithm == kUnrepeatable ? CUBLASLT_REDUCTION_SCHEME_INPLACE : CUBLASLT_REDUCTION_SCHEME_NONE;
}

}  // namespace teratron::emulated

using namespace teratron::emulated;  // NOLINT: this is its other half

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int most, int ids[],
                                        int* found) {
  *found = std::min(most, static_cast<int>(kBlasAlgorithms));
  for (int i = 0; i < *found; ++i) ids[i] = i;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                                      cublasLtMatmulAlgo_t* algorithm) {
  if (id == static_cast<int>(kFailing)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto number = static_cast<std::uint64_t>(id);
  *algorithm = {{number, scheme_of(number)}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute, void* value,
                                                 std::size_t bytes, std::size_t* written) {
  const bool splits = algorithm->data[kNumber] == kSplitting;
  std::vector<std::uint32_t> values;
  switch (attribute) {
    case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT: values = {splits ? 1U : 0U}; break;
    case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK: values = {CUBLASLT_REDUCTION_SCHEME_MASK}; break;
    case CUBLASLT_ALGO_CAP_TILE_IDS: values = {kSmallTile, kLargeTile}; break;
    case CUBLASLT_ALGO_CAP_STAGES_IDS: values = {1, 2}; break;  // of which the second is for other products
  }
  *written = values.size() * sizeof(values.front());
  if (bytes == 0) return CUBLAS_STATUS_SUCCESS;
  if (bytes < *written) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, values.data(), *written);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  std::uint32_t set = 0;
  if (bytes != sizeof(set)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&set, value, bytes);
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_TILE_ID: algorithm->data[kTile] = set; break;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: algorithm->data[kParts] = set; break;
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME: algorithm->data[kScheme] = set; break;
    case CUBLASLT_ALGO_CONFIG_STAGES_ID: algorithm->data[kStages] = set; break;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const auto scheme = static_cast<std::uint32_t>(algorithm->data[kScheme]);
  if (bytes != sizeof(scheme)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &scheme, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
