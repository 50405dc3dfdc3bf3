#include "ops/cpu/scratch.h"

#include <cstddef>
#include <new>

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

 private:
  void* memory_ = nullptr;
  std::int64_t count_ = 0;
};

}  // namespace

float* scratch_floats(Scratch use, std::int64_t count) {
  thread_local std::array<Block, static_cast<std::size_t>(Scratch::kCount)> blocks;
  return blocks[static_cast<std::size_t>(use)].at_least(count);
}

}  // namespace teratron
