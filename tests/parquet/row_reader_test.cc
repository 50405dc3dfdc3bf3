// Rows are those that pyarrow wrote, from any row on, and whatever is done to a file's bytes does no harm.
#include "parquet/row_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "base/trials.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

using namespace parquet;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ParquetRows : public ::testing::Test {
 protected:
  // A new file each time, without fsync.
  std::filesystem::path put(const std::string& bytes) {
    const std::filesystem::path path = folder_ / "a.parquet";
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // Reads all; the error's message, or "" where there was none.
  std::string fault_of(const std::string& bytes) {
    constexpr std::size_t kMostBytes = std::size_t{16} << 20;
    constexpr int kMostRows = 2000;  // a number in a file may say any
    try {
      RowReader reader(put(bytes), {}, kMostBytes);
      std::string row;
      for (int i = 0; i < kMostRows && reader.next(row); ++i) row.clear();
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  }
  TemporaryFolder folder_;
};

TEST_F(ParquetRows, AreThoseThatPyarrowWrote) {
  const auto files = golden_parquet_files();
  EXPECT_GE(files.size(), 10U);
  for (const auto& file : files) {
    RowReader reader(file);
    const auto expected = expected_rows(file);
    EXPECT_EQ(reader.rows(), std::ssize(expected)) << file;
    EXPECT_EQ(rows_of(reader), expected) << file;
    EXPECT_EQ(reader.bytes_taken(), static_cast<std::int64_t>(std::filesystem::file_size(file)));
  }
}

TEST_F(ParquetRows, BeginAfterAnyNumberOfOthers) {
  for (const char* name : {"fineweb-zstd.parquet", "nested-snappy.parquet"}) {
    const auto expected = expected_rows(golden_parquet() / name);
    for (std::int64_t skipped = 0; skipped <= std::ssize(expected) + 1; ++skipped) {
      RowReader reader(golden_parquet() / name);
      reader.skip(skipped / 2);
      reader.skip(skipped - skipped / 2);
      const auto begin = expected.begin() + std::min(skipped, std::ssize(expected));
      EXPECT_EQ(rows_of(reader), std::vector<std::string>(begin, expected.end())) << name << " after " << skipped;
    }
  }
}

TEST_F(ParquetRows, HaveTheColumnsThatAreAskedForOrAll) {
  const auto first_row = [](const std::vector<std::string>& columns) {
    std::string row;
    RowReader(golden_parquet() / "fineweb-snappy.parquet", columns).next(row);
    return row;
  };
  EXPECT_EQ(first_row({"token_count", "dump", "absent"}), R"({"dump": "CC-MAIN-2024-10", "token_count": 8})");
  EXPECT_EQ(first_row({"absent"}), expected_rows(golden_parquet() / "fineweb-snappy.parquet")[0]);
}

// All columns have base64 there, which is no text to learn from.
TEST_F(ParquetRows, OfColumnsThatAreAskedForAreTexts) {
  const std::vector<std::string> columns = {"bytes"};
  RowReader reader(golden_parquet() / "types-plain.parquet", columns);
  std::string row;
  reader.next(row);
  EXPECT_EQ(row, R"({"bytes": "as text"})");
  EXPECT_THAT(message_of<UserError>([&] { reader.next(row); }),
              HasSubstr("types-plain.parquet' in row 2 has no text in the column 'bytes'"));
}

TEST_F(ParquetRows, OfTextColumnsAmongAllAreTextsAndOthersAreReadAsEver) {
  RowReader reader(golden_parquet() / "types-plain.parquet");
  reader.take_texts(std::vector<std::string>{"fixed", "decimal", "absent"});
  std::string row;
  reader.next(row);
  EXPECT_EQ(row, expected_rows(golden_parquet() / "types-plain.parquet")[0]);
  EXPECT_THAT(message_of<UserError>([&] { reader.next(row); }),
              HasSubstr("in row 2 has no text in the column 'fixed'"));
}

// A column's type says which of its strings are base64, so that no reader guesses.
TEST_F(ParquetRows, OfColumnsOfBytesAreAllInBase64WhereTheyAreTaken) {
  RowReader reader(golden_parquet() / "types-plain.parquet");
  for (const char* column : {"text", "category", "decimal", "int8", "absent"}) {
    EXPECT_FALSE(reader.take_bytes(column)) << column;
  }
  EXPECT_TRUE(reader.take_bytes("fixed"));
  EXPECT_TRUE(reader.take_bytes("bytes"));
  const std::vector<std::string> rows = rows_of(reader);
  const std::vector<std::string> bytes = {R"("YXMgdGV4dA==")", R"("/wAB")", "null", R"("")", R"("5pel5pys")"};
  const std::vector<std::string> fixed = {R"("YWJj")", R"("//79")", "null", R"("ZGVm")", R"("AAAA")"};
  ASSERT_EQ(rows.size(), bytes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_THAT(rows[i], HasSubstr(R"("bytes": )" + bytes[i] + R"(, "fixed": )" + fixed[i])) << i;
  }
  EXPECT_THAT(rows[1], HasSubstr(R"("category": "b")")) << "as it is without";
}

TEST_F(ParquetRows, OfAFileThatIsCutShortAreRefusedWithItsName) {
  const std::string whole = read_file(golden_parquet() / "nested-snappy.parquet");
  for (std::size_t size = 0; size < whole.size(); size += 1 + size % 7) {
    EXPECT_THAT(fault_of(whole.substr(0, size)),
                AllOf(HasSubstr("a.parquet' is damaged"), HasSubstr("download it again")));
  }
}

TEST_F(ParquetRows, OfDamagedFilesAreReadWithoutHarmOrRefused) {
  std::mt19937 random(1);
  int refused = 0, read = 0;
  for (const auto& file : golden_parquet_files()) {
    const std::string whole = read_file(file);
    for (int trial = 0; trial < trials(120); ++trial) {
      std::string bytes = whole;
      const int changes = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < changes; ++i) {
        // Half of the changes meet the footer, which is in the last third.
        const std::size_t begin = random() % 2 == 0 ? 0 : bytes.size() * 2 / 3;
        char& byte = bytes[begin + random() % (bytes.size() - begin)];
        byte = static_cast<char>(random() % 2 == 0 ? byte ^ (1 << random() % 8) : random());
      }
      const std::string fault = fault_of(bytes);
      ++(fault.empty() ? read : refused);
      EXPECT_TRUE(fault.empty() || fault.find("a.parquet' ") != fault.npos) << fault;
    }
  }
  EXPECT_GT(refused, read / 4);
}

TEST_F(ParquetRows, WithChecksumsAreOthersOnlyWhereTheHeadOfAPageIsDamaged) {
  const std::filesystem::path file = golden_parquet() / "fineweb-deltas.parquet";
  const std::string whole = read_file(file);
  const auto expected = expected_rows(file);
  std::uint32_t footer = 0;
  std::memcpy(&footer, whole.data() + whole.size() - 8, sizeof footer);
  int by_checksum = 0, others = 0;
  for (std::size_t at = 4; at < whole.size() - 8 - footer; at += 3) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    try {
      RowReader reader(put(bytes));
      others += rows_of(reader) == expected ? 0 : 1;
    } catch (const UserError& error) {
      by_checksum += std::string(error.what()).find("has not its checksum") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(by_checksum, 300);
  EXPECT_LE(others, 9) << "one of the encoding in the head of each column's page";
}

TEST_F(ParquetRows, AreRefusedWithWhatToDo) {
  EXPECT_THAT(fault_of(""), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(fault_of("PAR1" + std::string(20, '\0') + "PARE"),
              AllOf(HasSubstr("encrypted"), HasSubstr("write_table")));
  EXPECT_THAT(fault_of(std::string("PAR1\xFF\xFF\xFF\x7FPAR1")), HasSubstr("to have 2147483647 bytes"));
  EXPECT_THAT(fault_of(std::string("PAR1\0\1\0\0\0PAR1", 13)), HasSubstr("no schema"));
  EXPECT_THROW(RowReader(folder_ / "absent"), UserError);
  EXPECT_THROW(RowReader(folder_.path()), UserError);
  RowReader small(golden_parquet() / "fineweb-snappy.parquet", {}, 1000);
  std::string row;
  EXPECT_THROW(small.next(row), UserError);
}

}  // namespace
}  // namespace teratron::testing
