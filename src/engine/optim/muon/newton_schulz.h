// Newton-Schulz iteration: brings all singular values of a matrix near 1 by products alone (Jordan et al., "Muon: An
// optimizer for hidden layers in neural networks", 2024; Bernstein and Newhouse, arXiv 2409.20325).
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/working_memory.h"

namespace teratron {

// The memory of one call beside the matrix itself.
struct OrthogonalizeMemory {
  TensorRef other;         // [rows, columns]
  TensorRef gram, square;  // [n, n] with n the smaller of rows and columns
  TensorRef wide_gram;     // A [n, n], for matrices with more rows than columns; may be gram itself where A is C
};

inline constexpr int kNewtonSchulzIterations = 5;

// x[rows, columns], of the compute type and a Frobenius norm of at most 1, becomes five iterations of x <- 3.4445 x -
// 4.7750 (x x^T) x + 2.0315 (x x^T)^2 x. The result has singular values between about 0.7 and 1.2; those below about
// 1e-3 of the norm stay smaller.
void orthogonalize(Backend& backend, TensorRef x, const OrthogonalizeMemory& memory);

// The products of an iteration; the first one once more with its sides in another order.
std::vector<WorkShapes::Product> orthogonalize_products(std::int64_t rows, std::int64_t columns);

}  // namespace teratron
