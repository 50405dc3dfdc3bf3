#include "base/host/resources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace teratron::testing {
namespace {

TEST(PeakMemory, GrowsByWhatIsTouchedAndNeverShrinks) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::uint64_t before = peak_memory_bytes();
  ASSERT_GT(before, 0U);
  {
    std::vector<char> block(kBytes, 1);
    ASSERT_EQ(std::count(block.begin(), block.end(), 1), static_cast<std::ptrdiff_t>(kBytes));
  }
  const std::uint64_t after = peak_memory_bytes();
  // Pages that earlier tests have left to the allocator may be used again: half is safe.
  EXPECT_GE(after, before);
  EXPECT_GE(after, kBytes / 2 + std::min<std::uint64_t>(before, kBytes / 2));
  EXPECT_GE(peak_memory_bytes(), after);
}

}  // namespace
}  // namespace teratron::testing
