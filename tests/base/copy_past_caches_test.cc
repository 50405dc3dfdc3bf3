#include "base/host/copy_past_caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace teratron::testing {
namespace {

TEST(CopyPastCaches, CopiesAnyBytesFromAnywhereToAnywhereAndTouchesNoOthers) {
  RandomSequence random({.seed = 7});
  std::vector<std::byte> from(1024), to(1024);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random.next_u32());
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t bytes = random.below(trial % 2 == 0 ? 200 : 800);
    const std::size_t read = random.below(200), write = random.below(200);
    std::vector<std::byte> expected = to;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(read), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(write));
    copy_past_caches(std::span(to).subspan(write), std::span(from).subspan(read, bytes));
    ASSERT_EQ(to, expected) << bytes << " bytes from " << read << " to " << write;
    to[random.below(1024)] ^= std::byte{1};
  }
  EXPECT_THROW(copy_past_caches(std::span(to).first(9), std::span(from).first(10)), InternalError);
}

}  // namespace
}  // namespace teratron::testing
