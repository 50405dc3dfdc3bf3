// Encodings by their definitions: what an encoder of a few lines writes is read back, and cut short it is refused.
#include <gtest/gtest.h>

#include <random>

#include "parquet/columns/bit_runs.h"
#include "parquet/columns/delta.h"

namespace teratron::testing {
namespace {

using namespace parquet;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string zigzag(std::uint64_t value) { return varint(value << 1 ^ ((value >> 63) != 0 ? ~std::uint64_t{0} : 0)); }

// The lowest bits first.
std::string packed(const std::vector<std::uint64_t>& values, unsigned width) {
  std::string bytes((values.size() * width + 7) / 8, '\0');
  for (std::size_t bit = 0; bit < values.size() * width; ++bit) {
    if ((values[bit / width] >> bit % width & 1) != 0) bytes[bit / 8] |= static_cast<char>(1 << bit % 8);
  }
  return bytes;
}

TEST(ParquetEncodings, RunsAreReadAsWritten) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto width = static_cast<unsigned>(random() % 33);
    const std::uint64_t mask = width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width);
    std::vector<std::uint64_t> values;
    std::string bytes;
    for (int run = 0; run < 5; ++run) {
      std::vector<std::uint64_t> one(random() % 2 == 0 ? random() % 300 : 8 * (random() % 9));
      const bool is_packed = one.size() % 8 == 0 && random() % 2 == 0;
      const std::uint64_t same = random() & mask;
      for (std::uint64_t& value : one) value = is_packed ? random() & mask : same;
      bytes += varint(is_packed ? one.size() / 8 << 1 | 1 : one.size() << 1);
      bytes += is_packed ? packed(one, width) : packed({same}, 8 * ((width + 7) / 8));
      values.insert(values.end(), one.begin(), one.end());
    }
    BitRuns runs(bytes, width);
    for (const std::uint64_t value : values) ASSERT_EQ(runs.next(), value) << width;
    EXPECT_THROW(runs.next(), Damaged);
  }
  EXPECT_THROW(BitRuns("", 33), Damaged);
}

TEST(ParquetEncodings, DifferencesOfAnySizeAreReadAsWritten) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t miniblock = 32 * (1 + random() % 2), miniblocks = 1 + random() % 4,
                      block = miniblock * miniblocks;
    std::vector<std::uint64_t> values(random() % 300);
    const auto shift = random() % 64;
    for (std::uint64_t& value : values) value = random() >> shift;
    std::string bytes =
        varint(block) + varint(miniblocks) + varint(values.size()) + zigzag(values.empty() ? 0 : values[0]);
    for (std::size_t begin = 1; begin < values.size(); begin += block) {
      const std::size_t end = std::min(begin + block, values.size());
      std::uint64_t least = values[begin] - values[begin - 1];
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint64_t difference = values[i] - values[i - 1];
        if (static_cast<std::int64_t>(difference) < static_cast<std::int64_t>(least)) least = difference;
      }
      std::string widths, all;
      for (std::size_t part = 0; part < miniblocks; ++part) {
        std::vector<std::uint64_t> differences;
        std::uint64_t bits = 0;
        for (std::size_t i = begin + part * miniblock; i < std::min(begin + (part + 1) * miniblock, end); ++i) {
          differences.push_back(values[i] - values[i - 1] - least);
          bits |= differences.back();
        }
        const auto width = static_cast<unsigned>(std::bit_width(bits));
        widths += static_cast<char>(width);
        if (differences.empty()) continue;
        differences.resize(miniblock);
        all += packed(differences, width);
      }
      bytes += zigzag(least) + widths + all;
    }
    const std::string with_more = bytes + "more";
    DeltaIntegers integers(with_more);
    EXPECT_EQ(integers.size(), bytes.size());
    for (const std::uint64_t value : values) ASSERT_EQ(static_cast<std::uint64_t>(integers.next()), value);
    EXPECT_THROW(integers.next(), Damaged);
    if (bytes.size() <= 6) continue;
    EXPECT_THROW(DeltaIntegers(bytes.substr(0, bytes.size() - 1)).size(), Damaged);
  }
}

}  // namespace
}  // namespace teratron::testing
