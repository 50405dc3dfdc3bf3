#include "ops/cpu/cpu_backend.h"

#include "ops/storage.h"

namespace teratron {

CpuBackend::CpuBackend(const CpuOptions& options)
    : compute_dtype_(options.compute_dtype),
      guarded_(options.guard_memory ? std::make_unique<GuardedMemory>() : nullptr) {
  choose_by_storage(compute_dtype_, [](auto) { return true; });  // or says that there are no such kernels
}

void CpuBackend::open_memory() {
  if (guarded_) guarded_->open();
}

void CpuBackend::close_memory() noexcept {
  if (guarded_) guarded_->close();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace teratron
