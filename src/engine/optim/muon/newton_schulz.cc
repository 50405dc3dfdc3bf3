#include "optim/muon/newton_schulz.h"

#include <algorithm>

namespace teratron {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

// The smaller of x x^T and x^T x: either gives the same polynomial of x.
void multiply_by_itself(Backend& backend, TensorRef x, const OrthogonalizeMemory& memory) {
  if (x.dim(0) <= x.dim(1)) return backend.linear_forward({.y = memory.gram, .x = x, .weight = x});
  backend.linear_weight_gradient({.dweight = memory.wide_gram, .dy = x, .x = x});
  if (memory.wide_gram.data != memory.gram.data) backend.copy(memory.gram, memory.wide_gram);
}

}  // namespace

void orthogonalize(Backend& backend, TensorRef x, const OrthogonalizeMemory& memory) {
  const auto& [other, gram, square, wide_gram] = memory;
  for (int iteration = 0; iteration < kNewtonSchulzIterations; ++iteration) {
    multiply_by_itself(backend, x, memory);
    backend.linear_forward({.y = square, .x = gram, .weight = gram});  // gram is symmetric
    backend.scale_add(square, kC, gram, kB);
    if (x.dim(0) <= x.dim(1)) {
      backend.linear_input_gradient({.dx = other, .dy = square, .weight = x});
    } else {
      backend.linear_forward({.y = other, .x = x, .weight = square});
    }
    backend.scale_add(x, kA, other, 1);
  }
}

std::vector<WorkShapes::Product> orthogonalize_products(std::int64_t rows, std::int64_t columns) {
  const std::int64_t n = std::min(rows, columns);
  return {{.rows = rows, .inputs = columns, .outputs = n}, {.rows = n, .inputs = n, .outputs = n}};
}

}  // namespace teratron
