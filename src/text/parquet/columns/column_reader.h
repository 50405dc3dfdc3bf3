// The entries of a column in a row group, page by page.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/files/random_access_file.h"
#include "parquet/columns/bit_runs.h"
#include "parquet/columns/page_values.h"
#include "parquet/file/schema.h"

namespace teratron::parquet {

// Memory that the columns of a file share: a bound for their pages together, and the compressed bytes of the last page.
class PageMemory {
 public:
  explicit PageMemory(std::size_t most) : most_(most) {}

  // Counts `now` bytes in the place of `before`. Unsupported: the sum exceeds the bound.
  void count(std::size_t before, std::size_t now);
  void release(std::size_t bytes) noexcept { held_ -= bytes; }
  // At least `size` bytes for a compressed page; the content before is lost. Unsupported: as count().
  std::span<char> packed(std::size_t size);

 private:
  std::size_t most_, held_ = 0;
  std::vector<char> packed_;
};

// Holds a page and the column's dictionary, decompressed. Functions throw Damaged and Unsupported.
class ColumnReader {
 public:
  ColumnReader(const RandomAccessFile& file, const Leaf& leaf, const ColumnChunk& chunk, PageMemory& memory);
  ColumnReader(const ColumnReader&) = delete;
  ColumnReader& operator=(const ColumnReader&) = delete;
  ~ColumnReader();

  bool is_at_end() {
    ready();
    return !has_entry_;
  }
  // The levels of the next entry. At the end the repetition level is 0, as where a row begins.
  int definition() {
    ready();
    if (!has_entry_) throw_no_entry();
    return definition_;
  }
  int repetition() {
    ready();
    return repetition_;
  }
  // Takes the entry and returns its value, empty if it has none. Valid until the next call of any function.
  std::string_view take();

 private:
  void ready() {
    if (!has_entry_ && values_left_ > 0) read_levels();
  }
  void read_levels();
  void read_page();
  PageHeader read_header();
  std::string_view read_bytes(const PageHeader& header);
  void unpack(const PageHeader& header, std::string_view stored, std::vector<char>& to);
  void hold(std::size_t before, std::size_t now);
  void make_room(std::vector<char>& page, std::size_t size);
  void begin_dictionary(const PageHeader& header, std::string_view stored);
  void begin_data(const PageHeader& header);
  [[noreturn]] void throw_no_entry() const;

  const RandomAccessFile& file_;
  const Leaf& leaf_;
  const ColumnChunk& chunk_;
  PageMemory& memory_;
  std::size_t held_ = 0;      // bytes counted in memory_
  std::uint64_t at_, end_;    // bytes of the chunk to come
  std::int64_t values_left_;  // entries of the chunk whose levels are to come
  std::int64_t page_left_ = 0;
  bool has_entry_ = false, has_dictionary_ = false;
  int definition_ = 0, repetition_ = 0;
  std::vector<char> page_, dictionary_page_;
  Dictionary dictionary_;
  BitRuns definitions_, repetitions_;
  std::unique_ptr<PageValues> values_;
};

}  // namespace teratron::parquet
