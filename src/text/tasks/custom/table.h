// Rows of users' own files: CSV, TSV, JSON lines or Parquet, by the ending of their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace teratron::custom {

struct Columns {
  std::string text, pair, negative, label;  // an empty name is not read
};
Columns columns_of(const TaskReading& reading);

struct Row {
  std::string text, pair, negative;
  std::string label;      // without spaces around it; empty: none
  std::int64_t line = 0;  // of its file, from 1; in a JSON array the element's number
  std::size_t file = 0;   // its index among the files
};

struct Table {
  std::vector<std::filesystem::path> files;
  std::vector<Row> rows;
  std::vector<std::string> columns;  // of the last file, or keys of its first object; for messages

  std::string place(const Row& row) const;  // "dev.csv:12"
};

// Reads all rows of the files, plain or compressed (gzip, zstd). `.csv` and `.tsv` begin with a row of the columns'
// names; a file without the column of labels has none. `.jsonl`, `.ndjson` and `.json` (an array, too) hold objects
// with the columns as keys, and so do the rows of `.parquet`; numbers and booleans are texts as they are written, and a
// label may be null or missing.
// UserError, with file and line: another ending, a column that is missing or there twice, another number of cells than
// the first row's, a value that is no text, text that is not UTF-8, no row at all.
Table read_table(std::span<const std::filesystem::path> files, const Columns& columns);

// Calls visit(object, place, line) for each object of a file of JSON lines, or of a JSON array, plain or compressed, or
// each row of a Parquet file. UserError, with its place: what is no JSON object, or not UTF-8; bytes of a Parquet
// column that is one of `texts`.
using ObjectVisitor = std::function<void(std::string_view object, const std::string& place, std::int64_t line)>;
void visit_objects(const std::filesystem::path& file, std::vector<std::string> texts, const ObjectVisitor& visit);

// The keys of a JSON object, for messages.
std::string keys_of(std::string_view object);

}  // namespace teratron::custom
