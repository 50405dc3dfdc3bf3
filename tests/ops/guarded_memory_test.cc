// Device memory is opaque: reads outside of a call kill the process, reads inside do not.
#include "ops/guarded_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace teratron::testing {
namespace {

constexpr std::int64_t kFloats = 1000;

class GuardedMemoryTest : public ::testing::Test {
 protected:
  GuardedMemory memory_;
  float* block_ = static_cast<float*>(memory_.allocate(kFloats * 4));
};
using GuardedMemoryDeathTest = GuardedMemoryTest;

float read(const float* address) { return *static_cast<const volatile float*>(address); }

TEST_F(GuardedMemoryTest, CanBeUsedWhileItIsOpenAndKeepsItsContentsWhileClosed) {
  memory_.open();
  for (int i = 0; i < kFloats; ++i) block_[i] = static_cast<float>(i);
  memory_.close();
  memory_.open();
  for (int i = 0; i < kFloats; ++i) ASSERT_EQ(block_[i], static_cast<float>(i));
  memory_.close();
}

TEST_F(GuardedMemoryTest, BlocksAreAlignedAndBeginAsNaN) {
  for (const std::int64_t bytes : {0, 1, 63, 64, 4096, 100000}) {
    void* const block = memory_.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
    memory_.release(block);
  }
  memory_.open();
  EXPECT_TRUE(std::isnan(block_[0]) && std::isnan(block_[kFloats - 1]));
  memory_.close();
}

TEST_F(GuardedMemoryTest, BlocksAllocatedWhileOpenAreOpen) {
  memory_.open();
  auto* const block = static_cast<float*>(memory_.allocate(16));
  block[0] = 1;
  EXPECT_EQ(read(block), 1);
  memory_.close();
  memory_.release(block);
}

TEST_F(GuardedMemoryTest, StaysOpenForOneThreadWhenAnotherLeaves) {
  std::atomic<bool> failed = false;
  const auto work = [&](int which) {
    for (int i = 0; i < 2000; ++i) {
      memory_.open();
      block_[which] = static_cast<float>(i);
      if (read(block_ + which) != static_cast<float>(i)) failed = true;
      memory_.close();
    }
  };
  std::vector<std::thread> threads;
  for (int which = 0; which < 4; ++which) threads.emplace_back(work, which);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed);
}

TEST_F(GuardedMemoryDeathTest, ReadingClosedMemoryDies) { EXPECT_DEATH(read(block_), ""); }

TEST_F(GuardedMemoryDeathTest, WritingClosedMemoryDies) { EXPECT_DEATH(std::memset(block_, 0, 4), ""); }

TEST_F(GuardedMemoryDeathTest, MemoryIsClosedAgainAfterTheOutermostClose) {
  memory_.open();
  memory_.open();
  memory_.close();
  block_[0] = 1;
  memory_.close();
  EXPECT_DEATH(read(block_), "");
}

TEST_F(GuardedMemoryDeathTest, ReadingBeyondABlockDiesEvenWhileOpen) {
  memory_.open();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block_ + 1008) % 4096, 0U);  // 4000 bytes, rounded up to 64
  EXPECT_DEATH(read(block_ + 1008), "");
  memory_.close();
}

}  // namespace
}  // namespace teratron::testing
