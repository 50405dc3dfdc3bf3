#include "ops/cpu/cpu_backend.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "ops/cpu/products/bf16_kernels.h"
#include "ops/cpu_instructions.h"
#include "ops/storage.h"

namespace teratron {

bool multiplies_bf16(const CpuOptions& options) {
  return instructions_in_use().bf16_products && options.compute_dtype == DType::kBF16 && options.bf16_products;
}

CpuBackend::CpuBackend(const CpuOptions& options)
    : compute_dtype_(options.compute_dtype),
      bf16_products_(multiplies_bf16(options)),
      vnni_products_(options.vnni_products && instructions_in_use().vnni_products),
      frozen_linear_(options.frozen_linear),
      guarded_(options.guard_memory ? std::make_unique<GuardedMemory>() : nullptr) {
  choose_by_storage(compute_dtype_, [](auto) { return true; });  // throws where there are no such kernels
}

std::string CpuBackend::settings() const {
  std::vector<std::string> settings;
  if (instructions_in_use().is_asked_for)
    settings.push_back(fmt::format("TERATRON_INSTRUCTIONS={}", instructions_in_use().name));
  if (compute_dtype_ != DType::kF32) {
    settings.push_back(fmt::format("products of {} {}", name_of(compute_dtype_),
                                   bf16_products_ ? fmt::format("by {}", kBf16Instruction) : "widened to fp32"));
  }
  return fmt::format("{}", fmt::join(settings, ", "));
}

void CpuBackend::open_memory() {
  if (guarded_) guarded_->open();
}

void CpuBackend::close_memory() noexcept {
  if (guarded_) guarded_->close();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace teratron
