// Algorithms of cuBLASLt that share the terms of a product out over several blocks (split-K). A weight gradient has few
// tiles and many terms: 1536 x 1536 is 72 tiles of 128 x 256, for 132 multiprocessors. The library's own choices seldom
// split it.
#pragma once

#include <vector>

#include "ops/cuda/linear/gemm_descriptors.h"

namespace teratron::cuda {

// A product in the library's words, and the workspace that its algorithms may take.
struct DescribedProduct {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  cublasComputeType_t compute;
  cudaDataType_t a_type, b_type, c_type;
  std::size_t workspace;  // bytes
};

// At most `most` of them, those first that leave the fewest multiprocessors idle in their last wave; none that takes
// more than four waves. Parts are added up in the compute type and in order, so the sums repeat.
std::vector<cublasLtMatmulAlgo_t> algorithms_that_split(const DescribedProduct& product, std::size_t most);

}  // namespace teratron::cuda
