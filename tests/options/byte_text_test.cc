// Any bytes as text of UTF-8, there and back.
#include "options/output.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "base/utf8.h"

namespace teratron::testing {
namespace {

TEST(ByteText, IsUtf8AndReadsBackToTheSameBytes) {
  RandomSequence random({.seed = 3});
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = trial % 5 == 0 ? "bytes:" : "";
    const std::size_t length = random.below(12);
    const std::string_view some = "%a/\xC3\xA9\xE9\xF0\x80";
    for (std::size_t i = 0; i < length; ++i) {
      text += trial % 2 == 0 ? static_cast<char>(random.next_u32()) : some[random.below(some.size())];
    }
    ASSERT_TRUE(is_utf8(as_utf8(text)));
    ASSERT_EQ(from_utf8(as_utf8(text)), text);
  }
}

TEST(ByteText, StaysAsItIsWhereItCan) {
  EXPECT_EQ(as_utf8("/data/caf\xC3\xA9 100%"), "/data/caf\xC3\xA9 100%");
  EXPECT_EQ(as_utf8("/data/caf\xE9 100%"), "bytes:/data/caf%E9 100%25");
  EXPECT_EQ(from_utf8("/data/100%25"), "/data/100%25");
  EXPECT_EQ(from_utf8("bytes:100%zz%"), "100%zz%") << "what another program wrote";
}

}  // namespace
}  // namespace teratron::testing
