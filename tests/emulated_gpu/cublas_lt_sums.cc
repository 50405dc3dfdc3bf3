#include "emulated_gpu/cublas_lt_sums.h"

#include <algorithm>
#include <array>

#include "emulated_gpu/tensor_core.h"

namespace teratron::emulated {
namespace {

std::int64_t count_of(const Terms& terms) { return terms.end - terms.begin; }
std::int64_t number_of(const Terms& terms, std::int64_t i) {
  return terms.from_first ? terms.begin + i : terms.end - 1 - i;
}

}  // namespace

// The innermost loop is over columns, whose sums do not wait for one another.
void add_terms(const Terms& terms, std::span<float> sums) {
  for (std::int64_t i = 0; i < count_of(terms); ++i) {
    const std::int64_t k = number_of(terms, i);
    const float left = terms.left[k];
    const float* const right = terms.right + k * terms.columns;
    for (std::size_t column = 0; column < sums.size(); ++column) sums[column] += left * right[column];
  }
}

void add_terms_in_tensor_cores(const Terms& terms, std::span<float> sums) {
  std::array<double, kTensorCoreTerms> products{};
  for (std::int64_t done = 0; done < count_of(terms); done += kTensorCoreTerms) {
    const auto count = static_cast<std::size_t>(std::min(kTensorCoreTerms, count_of(terms) - done));
    for (std::size_t column = 0; column < sums.size(); ++column) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t k = number_of(terms, done + static_cast<std::int64_t>(i));
        products[i] = double{terms.left[k]} * terms.right[k * terms.columns + static_cast<std::int64_t>(column)];
      }
      sums[column] = tensor_core_sum(sums[column], std::span(products).first(count));
    }
  }
}

}  // namespace teratron::emulated
