#include "ops/cpu/cpu_backend.h"

#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu/products/tile_unit.h"
#include "ops/storage.h"

namespace teratron {

bool has_attention_products(const CpuOptions& options) {
  return options.compute_dtype == DType::kBF16 && options.bf16_products && has_bf16_products();
}

GemmProducts linear_products(const CpuOptions& options) {
  const bool is_bf16 = options.compute_dtype == DType::kBF16;
  if (!is_bf16 && options.compute_dtype != DType::kF16) return GemmProducts::kWidened;
  if (options.tiles == CpuTiles::kEmulated) return GemmProducts::kEmulatedTiles;
  const bool may_have_tiles = options.tiles == CpuTiles::kWhereThere && (!is_bf16 || options.bf16_products);
  if (may_have_tiles && has_tile_products(options.compute_dtype)) return GemmProducts::kTiles;
  return has_attention_products(options) ? GemmProducts::kVectors : GemmProducts::kWidened;
}

CpuBackend::CpuBackend(const CpuOptions& options)
    : compute_dtype_(options.compute_dtype),
      bf16_products_(has_attention_products(options)),
      products_(linear_products(options)),
      guarded_(options.guard_memory ? std::make_unique<GuardedMemory>() : nullptr) {
  choose_by_storage(compute_dtype_, [](auto) { return true; });  // or says that there are no such kernels
}

std::string CpuBackend::settings() const {
  if (compute_dtype_ == DType::kF32) return "";
  const std::string_view vectors = bf16_products_ ? "by AVX512-BF16" : "widened to fp32";
  if (products_ == GemmProducts::kTiles || products_ == GemmProducts::kEmulatedTiles) {
    return fmt::format("products of {} by {}AMX, in attention {}", name_of(compute_dtype_),
                       products_ == GemmProducts::kEmulatedTiles ? "emulated " : "", vectors);
  }
  return fmt::format("products of {} {}", name_of(compute_dtype_), vectors);
}

void CpuBackend::open_memory() {
  if (guarded_) guarded_->open();
}

void CpuBackend::close_memory() noexcept {
  if (guarded_) guarded_->close();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace teratron
