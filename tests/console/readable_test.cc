#include "console/readable.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/philox.h"
#include "console/text_table.h"

namespace teratron::testing {
namespace {

TEST(Readable, BytesHaveThreeDigitsAndABinaryUnit) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1024), "1.00 KiB");
  EXPECT_EQ(readable_bytes(1536 * 1024), "1.50 MiB");
  EXPECT_EQ(readable_bytes(std::uint64_t{1} << 40), "1.00 TiB");
  EXPECT_EQ(readable_bytes(1024 * 1024 - 1), "1.00 MiB");
}

TEST(Readable, CountsHaveThreeDigitsAndADecimalUnit) {
  EXPECT_EQ(readable_count(0), "0");
  EXPECT_EQ(readable_count(999), "999");
  EXPECT_EQ(readable_count(1234), "1.23 k");
  EXPECT_EQ(readable_count(124439808), "124 M");
  EXPECT_EQ(readable_count(8.3e9), "8.30 G");
  EXPECT_EQ(readable_count(999999), "1.00 M");
}

TEST(Readable, DurationsNameTheTwoLargestUnits) {
  EXPECT_EQ(readable_duration(0.0854), "85 ms");
  EXPECT_EQ(readable_duration(12.34), "12.3 s");
  EXPECT_EQ(readable_duration(59.96), "1 min 00 s");
  EXPECT_EQ(readable_duration(185), "3 min 05 s");
  EXPECT_EQ(readable_duration(3599.6), "1 h 00 min");
  EXPECT_EQ(readable_duration(7620), "2 h 07 min");
  EXPECT_EQ(readable_duration(4 * 86400 + 3 * 3600), "4 d 03 h");
  EXPECT_EQ(readable_duration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(readable_duration(-1), "?");
}

TEST(Readable, IntegersAreGroupedByThreeAndLoseNoDigit) {
  EXPECT_EQ(readable_integer(0), "0");
  EXPECT_EQ(readable_integer(-999), "-999");
  EXPECT_EQ(readable_integer(-1000), "-1,000");
  EXPECT_EQ(readable_integer(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 1000; ++trial) {
    const std::int64_t value = static_cast<std::int64_t>(random.below(std::uint64_t{1} << 62) >> random.below(62));
    std::string text = readable_integer(value);
    std::erase(text, ',');
    EXPECT_EQ(text, std::to_string(value));
  }
}

TEST(TextTable, ColumnsLineUpAndLinesEndWithoutSpaces) {
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.heading("A heading wider than any column");
  table.row({"caf\xC3\xA9", "7", ""});
  table.row({"x", "1,000", "note"});
  table.row({"only one"});
  EXPECT_EQ(table.text(),
            "A heading wider than any column\n"
            "  caf\xC3\xA9          7\n"
            "  x         1,000  note\n"
            "  only one\n");
}

}  // namespace
}  // namespace teratron::testing
