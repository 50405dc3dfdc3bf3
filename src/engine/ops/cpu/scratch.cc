#include "ops/cpu/scratch.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <numeric>

namespace teratron {
namespace {

constexpr std::align_val_t kAlignment{64};

class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { ::operator delete(memory_, kAlignment); }

  float* at_least(std::int64_t count) {
    if (count > count_) {
      ::operator delete(memory_, kAlignment);
      memory_ = nullptr;
      count_ = 0;
      memory_ = ::operator new(static_cast<std::size_t>(count) * sizeof(float), kAlignment);
      count_ = count;
    }
    return static_cast<float*>(memory_);
  }
  std::int64_t count() const { return count_; }

 private:
  void* memory_ = nullptr;
  std::int64_t count_ = 0;
};

constexpr auto kUses = static_cast<std::size_t>(Scratch::kCount);
thread_local std::array<Block, kUses> blocks;

}  // namespace

float* scratch_floats(Scratch use, std::int64_t count) { return blocks[static_cast<std::size_t>(use)].at_least(count); }

void ScratchSizes::include(Scratch use, std::int64_t count) {
  std::int64_t& floats = floats_[static_cast<std::size_t>(use)];
  floats = std::max(floats, count);
}

void ScratchSizes::include(const ScratchSizes& other) {
  for (std::size_t use = 0; use < kUses; ++use) include(static_cast<Scratch>(use), other.floats_[use]);
}

std::int64_t ScratchSizes::bytes() const {
  return std::accumulate(floats_.begin(), floats_.end(), std::int64_t{0}) * static_cast<std::int64_t>(sizeof(float));
}

ScratchSizes scratch_sizes() {
  ScratchSizes sizes;
  for (std::size_t use = 0; use < kUses; ++use) sizes.include(static_cast<Scratch>(use), blocks[use].count());
  return sizes;
}

}  // namespace teratron
