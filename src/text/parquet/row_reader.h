// The rows of a Parquet file as lines of JSON, in bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files/decompression.h"

namespace teratron::parquet {

// Reads row by row, a page of each column at a time. Memory: the footer, and for each column a page and its dictionary,
// together at most twice `most_bytes`. Not for several threads at once.
//
// A row is an object with a member a column, in the schema's order: null where there is no value, lists, structs as
// objects, maps as objects if their keys are texts, otherwise as lists of pairs, and values as append_json_value()
// says.
class RowReader {
 public:
  // `columns`: the members of a row to read, as take_texts() reads them. Names that the file lacks are ignored; if it
  // lacks all, every column is read. A row has at most `most_bytes`. UserError, here and in all functions, with the
  // file's name and what to do: no regular file; a damaged or truncated one; parts of the format that are not read
  // (encryption, columns in other files, LZO, LZ4 in Hadoop's frames, bit-packed levels); rows or pages that are too
  // large. EnvironmentError: as RandomAccessFile's.
  explicit RowReader(const std::filesystem::path& file, std::span<const std::string> columns = {},
                     std::size_t most_bytes = kMostUnpacked);
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;
  ~RowReader();

  // Reads these columns as texts: bytes that are not UTF-8 are an error, while other columns have them in base64.
  void take_texts(std::span<const std::string> columns);
  // Reads a column in base64 if its values are bytes by their type, UTF-8 or not. Returns whether they are.
  bool take_bytes(std::string_view column);

  std::int64_t rows() const;  // of the file
  // Appends the next row without a line end; false at the end.
  bool next(std::string& out);
  // Skips rows, at most all that are left; whole row groups unread.
  void skip(std::int64_t rows);
  // The file's size times the share of its rows that are read, for a progress display.
  std::int64_t bytes_taken() const;

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace teratron::parquet
