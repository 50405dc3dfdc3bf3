// The functions of bf16_kernels.h where no kernel is compiled.
#include "base/error.h"
#include "ops/cpu/products/bf16_kernels.h"

#if defined(TERATRON_WITHOUT_BF16_PRODUCTS) || !(defined(__x86_64__) || defined(__aarch64__))

namespace teratron {

bool has_bf16_products() { return false; }

void pack_bf16_panels(const Bf16*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t*) {
  throw InternalError("no bf16 products");
}
void pack_bf16_panel_transposed(const Bf16*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t*) {
  throw InternalError("no bf16 products");
}
void pack_bf16_tiles(const Bf16*, std::int64_t, std::int64_t, std::int64_t, std::uint32_t*) {
  throw InternalError("no bf16 products");
}
void round_to_bf16(const float*, std::int64_t, Bf16*, const Bf16*) { throw InternalError("no bf16 products"); }
void multiply_bf16_panel(std::int64_t, std::int64_t, std::int64_t, const Bf16*, std::int64_t, const std::uint32_t*,
                         float*, std::int64_t, bool) {
  throw InternalError("no bf16 products");
}
void multiply_bf16_rows(std::int64_t, std::int64_t, std::int64_t, const Bf16*, const Bf16*, float*, std::int64_t) {
  throw InternalError("no bf16 products");
}
void multiply_bf16_tiles(std::int64_t, std::int64_t, std::int64_t, const std::uint32_t*, const std::uint32_t*, float*,
                         std::int64_t, bool) {
  throw InternalError("no bf16 products");
}

}  // namespace teratron

#endif
