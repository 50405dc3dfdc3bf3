// Single-precision matrix products on one thread: what linear layers and attention are made of.
#pragma once

#include <cstdint>

namespace teratron {

enum class Transpose : char { kNo = 'N', kYes = 'T' };

// c[m,n] = beta * c + op(a)[m,k] op(b)[k,n], row-major with leading dimensions lda, ldb, ldc. Runs on the calling
// thread alone, so that the order of the sums never depends on how many there are.
void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

}  // namespace teratron
