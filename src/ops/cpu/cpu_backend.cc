#include "ops/cpu/cpu_backend.h"

namespace teratron {

CpuBackend::CpuBackend(const CpuOptions& options)
    : guarded_(options.guard_memory ? std::make_unique<GuardedMemory>() : nullptr) {}

void CpuBackend::enter_call() {
  if (guarded_) guarded_->open();
}

void CpuBackend::leave_call() noexcept {
  if (guarded_) guarded_->close();
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace teratron
