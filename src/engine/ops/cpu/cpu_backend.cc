#include "ops/cpu/cpu_backend.h"

#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/tile_products.h"
#include "ops/storage.h"

namespace teratron {

namespace {

// On Intel's Sapphire Rapids (without AMX), training by VDPBF16PS took 1.66 times as long as in widened products
// (bench/results/adapters.md). On Zen 4 it is twice as fast.
bool are_bf16_products_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return true;
#endif
}

}  // namespace

bool multiplies_bf16(const CpuOptions& options) {
  return options.compute_dtype == DType::kBF16 && options.bf16_products && has_bf16_products() &&
         are_bf16_products_fast();
}

CpuBackend::CpuBackend(const CpuOptions& options)
    : compute_dtype_(options.compute_dtype),
      bf16_products_(multiplies_bf16(options)),
      vnni_products_(options.vnni_products),
      frozen_linear_(options.frozen_linear),
      guarded_(options.guard_memory ? std::make_unique<GuardedMemory>() : nullptr) {
  choose_by_storage(compute_dtype_, [](auto) { return true; });  // or says that there are no such kernels
}

std::string CpuBackend::settings() const {
  if (compute_dtype_ == DType::kF32) return "";
  return fmt::format("products of {} {}", name_of(compute_dtype_),
                     bf16_products_ ? fmt::format("by {}", kBf16Instruction) : "widened to fp32");
}

void CpuBackend::open_memory() {
  if (guarded_) guarded_->open();
}

void CpuBackend::close_memory() noexcept {
  if (guarded_) guarded_->close();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace teratron
