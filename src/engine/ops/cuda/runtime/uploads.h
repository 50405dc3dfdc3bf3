// Small copies to the device (token ids, targets) for which the host does not wait: the values are copied to pinned
// memory, from which the device reads them in stream order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class Uploads {
 public:
  static constexpr std::int64_t kMost = std::int64_t{256} << 10;  // bytes of one copy

  explicit Uploads(cudaStream_t stream) : stream_(stream) {}
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;
  ~Uploads();

  // In stream order. `from` may change when it returns.
  void copy(void* to, const void* from, std::int64_t bytes);

 private:
  static constexpr std::size_t kSlots = 8;  // copies in flight at most

  const cudaStream_t stream_;
  std::byte* pinned_ = nullptr;  // kSlots x kMost bytes, allocated by the first copy
  std::array<TimedEvent, kSlots> done_;
  std::size_t next_ = 0;
};

}  // namespace teratron::cuda
