// The tuned back end for CPUs: fp32 arithmetic on fp32, bf16 or fp16 storage, but for matrix products of bf16 where the
// processor has them (bf16_kernels.h); vectors through Highway, threads through base/host/threads.h. A family of
// operations has a file. Every output element is summed in an order that depends on the shapes alone, so results are
// the same bits whatever the number of threads and their timing.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "ops/backend.h"
#include "ops/guarded_memory.h"

namespace teratron {

// Whether these options and this processor multiply matrices by bf16_kernels.h.
bool multiplies_bf16(const CpuOptions& options);

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options);

  std::string_view name() const override { return "cpu"; }
  DType compute_dtype() const override { return compute_dtype_; }
  std::string settings() const override;
  bool has_frozen_linear() const override { return frozen_linear_; }
  // Blocks of a huge page or more are aligned to it and ask the system for huge pages. They are mapped, not taken from
  // the C library, so released blocks return to the system and do not add to the planned memory.
  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;

 protected:
  TERATRON_OVERRIDE_OPERATIONS
  void do_pack_weight(const TensorRef& packed, const TensorRef& weight, WeightProduct use) override;
  void open_memory() override;
  void close_memory() noexcept override;

 private:
  DType compute_dtype_;
  bool bf16_products_, vnni_products_, frozen_linear_;
  std::mutex mutex_;
  std::map<void*, std::int64_t> mapped_;    // bytes of each mapping, by its address
  std::unique_ptr<GuardedMemory> guarded_;  // null unless CpuOptions::guard_memory
};

}  // namespace teratron
