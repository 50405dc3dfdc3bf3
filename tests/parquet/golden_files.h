// Files of tests/golden/parquet, and what pyarrow says that their rows are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "base/lines.h"
#include "parquet/row_reader.h"

namespace teratron::testing {

inline std::filesystem::path golden_parquet() {
  return std::filesystem::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "parquet";
}

// fineweb-zstd.parquet, types-plain.parquet ...
inline std::vector<std::filesystem::path> golden_parquet_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden_parquet())) {
    if (entry.path().extension() == ".parquet") files.push_back(entry.path());
  }
  return files;
}

inline std::vector<std::string> lines_in(const std::filesystem::path& file) { return lines_of(read_file(file)); }

// The rows of fineweb-zstd.parquet: fineweb.jsonl.
inline std::vector<std::string> expected_rows(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  return lines_in(file.parent_path() / (name.substr(0, name.find('-')) + ".jsonl"));
}

// All rows that the reader has left.
inline std::vector<std::string> rows_of(parquet::RowReader& reader) {
  std::vector<std::string> rows;
  for (std::string row; reader.next(row); row.clear()) rows.push_back(row);
  return rows;
}

}  // namespace teratron::testing
