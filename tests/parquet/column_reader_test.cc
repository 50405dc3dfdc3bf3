// The memory of a column's pages.
#include "parquet/columns/column_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "parquet/file/fault.h"

namespace teratron::testing {
namespace {

using namespace parquet;

// Field of a struct in Thrift's compact protocol, one after the field before: a number of 32 bits.
std::string next_number(std::uint32_t value) {
  std::string bytes = "\x15";
  for (value *= 2; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A page of so many numbers of 4 bytes, uncompressed, without levels.
std::string page_of(std::uint32_t values) {
  const std::string size = next_number(4 * values), end(1, '\0');
  const std::string runs = next_number(3), head = next_number(values) + next_number(0) + runs + runs + end;
  return next_number(0) + size + size + "\x2C" + head + end + std::string(4 * values, 'x');
}

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

}  // namespace
}  // namespace teratron::testing
