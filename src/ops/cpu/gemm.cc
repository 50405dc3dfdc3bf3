#include "ops/cpu/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include "base/error.h"

namespace teratron {

void gemm(Transpose transpose_a, Transpose transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  const int threads = omp_get_max_threads();
  if (!omp_in_parallel() && threads > 1) omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(static_cast<char>(transpose_a), static_cast<char>(transpose_b), m, n, k,
                                          alpha, a, lda, b, ldb, beta, c, ldc);
  if (!omp_in_parallel() && threads > 1) omp_set_num_threads(threads);
  check(status == dnnl_success, "dnnl_sgemm");
}

}  // namespace teratron
