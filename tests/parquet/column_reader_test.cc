// The memory of a column's pages.
#include "parquet/columns/column_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/compressed.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "parquet/columns/compression.h"
#include "parquet/file/fault.h"

namespace teratron::testing {
namespace {

using namespace parquet;
using ::testing::HasSubstr;

// Field of a struct in Thrift's compact protocol, one after the field before: a number of 32 bits.
std::string next_number(std::uint32_t value) {
  std::string bytes = "\x15";
  for (value *= 2; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A page of so many numbers, whose bytes are packed so and are to be so many.
std::string page_of(std::uint32_t values, const std::string& packed, std::uint32_t size) {
  const std::string end(1, '\0'), sizes = next_number(size) + next_number(static_cast<std::uint32_t>(packed.size()));
  const std::string runs = next_number(3), head = next_number(values) + next_number(0) + runs + runs + end;
  return next_number(0) + sizes + "\x2C" + head + end + packed;
}

// A page of so many numbers of 4 bytes, uncompressed, without levels.
std::string page_of(std::uint32_t values) { return page_of(values, std::string(4 * values, 'x'), 4 * values); }

class ParquetPages : public ::testing::Test {
 protected:
  static constexpr std::int64_t kFirst = 1000;  // values of the first page

  // Reads the first entry of the second page, of so many values, and then that of a column of one page as large as the
  // first. Their bytes in the file have `kFirst` values, too.
  void read_both(std::uint32_t second, std::size_t most_values) {
    const std::string first = page_of(kFirst), both = first + page_of(second);
    write_file_atomically(folder_ / "pages", both);
    const RandomAccessFile file(folder_ / "pages");
    const Leaf leaf{.path = "n", .element = {.type = PhysicalType::kInt32}};
    const ColumnChunk two{.size = both.size(), .values = kFirst + second, .type = PhysicalType::kInt32};
    const ColumnChunk one{.size = first.size(), .values = kFirst, .type = PhysicalType::kInt32};
    PageMemory memory(4 * most_values);
    ColumnReader column(file, leaf, two, memory), other(file, leaf, one, memory);
    for (std::int64_t i = 0; i < kFirst + 1; ++i) EXPECT_EQ(column.take(), "xxxx");
    EXPECT_EQ(other.take(), "xxxx");
  }

  // The first entry of a column of one page.
  std::string first_of(const std::string& page, Codec codec) {
    write_file_atomically(folder_ / "pages", page);
    const RandomAccessFile file(folder_ / "pages");
    const Leaf leaf{.path = "n", .element = {.type = PhysicalType::kInt32}};
    const ColumnChunk chunk{.size = page.size(), .values = 2, .codec = codec, .type = PhysicalType::kInt32};
    PageMemory memory(std::size_t{1} << 31);
    return std::string(ColumnReader(file, leaf, chunk, memory).take());
  }

  const TemporaryFolder folder_;
};

TEST_F(ParquetPages, CountWithAllTheMemoryThatTheyKeep) {
  read_both(600, 3000);
  EXPECT_THROW(read_both(600, 2999), Unsupported) << "the second page keeps the room of the first";
}

TEST_F(ParquetPages, GiveMemoryBackThatTheyMostlyLeaveEmpty) {
  read_both(400, 2400);
  EXPECT_THROW(read_both(400, 2399), Unsupported);
}

TEST_F(ParquetPages, TakeNoMemoryThatTheirBytesCannotFill) {
  for (const Codec codec : {Codec::kSnappy, Codec::kGzip, Codec::kBrotli, Codec::kZstd, Codec::kLz4}) {
    EXPECT_THAT(message_of<Damaged>([&] { first_of(page_of(2, std::string(20, '\0'), 1'000'000'000), codec); }),
                HasSubstr("is to have 1000000000 bytes, and cannot"));
  }
  for (const Codec codec : {Codec::kLzo, Codec::kHadoopLz4}) {
    EXPECT_THAT(message_of<Unsupported>([&] { first_of(page_of(2, std::string(20, '\0'), 1'000'000'000), codec); }),
                HasSubstr("compressed by LZ"));
  }
  constexpr std::uint32_t kNumbers = 16 << 20;  // of zstd, nothing is shorter than as many equal bytes
  const std::string packed = zstd(std::string(std::size_t{4} * kNumbers, 'x'), 19);
  EXPECT_GT(std::size_t{4} * kNumbers, packed.size() * 30'000);
  EXPECT_EQ(most_decompressed(Codec::kZstd, packed.size()) >= std::size_t{4} * kNumbers, true);
  EXPECT_EQ(first_of(page_of(2, zstd("xxxxyyyy"), 8), Codec::kZstd), "xxxx");
}

// Heads are read again and again, each time sixteen times as far, until they end.
TEST_F(ParquetPages, WithAHeadOfMoreThan16MiBAreRefused) {
  const auto page = [](std::size_t statistics) {
    std::string long_text = "\x18";  // the field after, which nobody reads
    for (std::size_t left = statistics;; left >>= 7) {
      long_text += static_cast<char>(left >= 0x80 ? left | 0x80 : left);
      if (left < 0x80) break;
    }
    const std::string bytes = page_of(2), end(1, '\0');
    const std::size_t head = bytes.size() - 9;
    return bytes.substr(0, head) + long_text + std::string(statistics, 's') + end + bytes.substr(head + 1);
  };
  EXPECT_EQ(first_of(page(std::size_t{15} << 20), Codec::kNone), "xxxx");
  EXPECT_THROW(first_of(page(std::size_t{17} << 20), Codec::kNone), Damaged);
}

}  // namespace
}  // namespace teratron::testing
