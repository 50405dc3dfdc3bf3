// Copies of a few values to the device (token ids, targets) that the host need not wait for: they are put down in
// pinned memory first, which the device reads when its turn comes.
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

  // In turn with what the stream does; returns when `from` may change.
  void copy(void* to, const void* from, std::int64_t bytes);

 private:
  static constexpr std::size_t kPlaces = 8;  // that are under way at most

  const cudaStream_t stream_;
  std::byte* pinned_ = nullptr;  // kPlaces x kMost bytes, taken for the first copy
  std::array<TimedEvent, kPlaces> done_;
  std::size_t next_ = 0;
};

}  // namespace teratron::cuda
