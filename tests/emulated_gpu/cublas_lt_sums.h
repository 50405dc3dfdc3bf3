// Sums of the products of matrices by the emulated cuBLASLt, row by row.
#pragma once

#include <cstdint>
#include <span>

namespace teratron::emulated {

// Terms [begin, end) of the sums of one row of a product.
struct Terms {
  const float* left = nullptr;   // of the row, a number for each term
  const float* right = nullptr;  // `columns` numbers for each term
  std::int64_t begin = 0, end = 0, columns = 0;
  bool from_first = true;  // the usual algorithm adds from the first term, the others from the last one
};

// Adds the terms to the sums of all columns: in fp32, one after another, or as tensor cores do (tensor_core.h).
void add_terms(const Terms& terms, std::span<float> sums);
void add_terms_in_tensor_cores(const Terms& terms, std::span<float> sums);

}  // namespace teratron::emulated
