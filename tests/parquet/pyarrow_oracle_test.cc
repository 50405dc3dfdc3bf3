// Random files of pyarrow: all types, nesting, versions, encodings, codecs, sizes of pages and row groups.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/trials.h"
#include "oracle/python.h"
#include "parquet/golden_files.h"

namespace teratron::testing {
namespace {

using namespace parquet;

TEST(ParquetOracle, RowsAreThoseThatPyarrowWrote) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  if (!oracle_has("pyarrow")) GTEST_SKIP() << "no pyarrow; scripts/oracle-env installs it";
  const TemporaryFolder folder;
  const std::filesystem::path log = folder / "log";
  const int files = is_fast_set() ? 60 : 300;
  const std::vector<std::string> arguments = {folder.path().string(), "1", std::to_string(files)};
  ASSERT_EQ(run_oracle("parquet_by_pyarrow.py", arguments, log), 0) << read_file(log);
  for (int i = 0; i < files; ++i) {
    const std::string name = std::to_string(i);
    RowReader reader(folder / (name + ".parquet"));
    const auto expected = lines_in(folder / (name + ".jsonl"));
    ASSERT_EQ(reader.rows(), std::ssize(expected)) << i;
    std::string row;
    for (std::size_t at = 0; at < expected.size(); ++at, row.clear()) {
      ASSERT_TRUE(reader.next(row));
      ASSERT_EQ(row, expected[at]) << "row " << at << " of file " << i;
    }
  }
}

}  // namespace
}  // namespace teratron::testing
