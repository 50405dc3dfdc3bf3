#include "ops/cuda/runtime/uploads.h"

#include <cstring>

namespace teratron::cuda {

Uploads::~Uploads() {
  if (pinned_ == nullptr) return;
  cudaStreamSynchronize(stream_);
  cudaFreeHost(pinned_);
}

void Uploads::copy(void* to, const void* from, std::int64_t bytes) {
  if (pinned_ == nullptr) {
    void* memory = nullptr;
    require(cudaMallocHost(&memory, kSlots * static_cast<std::size_t>(kMost)), "pinned memory of the host");
    pinned_ = static_cast<std::byte*>(memory);
  }
  const std::size_t slot = next_++ % kSlots;
  std::byte* const staged = pinned_ + slot * static_cast<std::size_t>(kMost);
  done_[slot].wait();  // for the copy that lay here; at once where there was none
  std::memcpy(staged, from, static_cast<std::size_t>(bytes));
  require(cudaMemcpyAsync(to, staged, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_),
          "a copy to the device");
  done_[slot].record(stream_);
}

}  // namespace teratron::cuda
