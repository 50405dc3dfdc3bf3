// Reads WARC files of crawlers: ISO 28500, versions 1.0 and 1.1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/files/decompression.h"

namespace teratron {

struct WarcRecord {
  std::string type;  // "response", "request", "warcinfo" ..., in lower case
  std::string url, date, content_type;
  std::string seen_type;    // the writer's judgement of the payload; empty: none
  std::int64_t length = 0;  // of its content, by the head
  std::int64_t number = 0;  // in the file, from 1
};

// Reads a file record by record in constant memory. UserError, with the file, the record's number and its offset (after
// decompression): no WARC, a head without a length, a record that is cut short or whose length is wrong, damaged
// compression.
class WarcReader {
 public:
  explicit WarcReader(const std::filesystem::path& path);

  // Whether the file begins like WARC.
  bool is_warc();
  // Whether a file that is no WARC begins with `first`, after white space.
  bool begins_with(char first);
  // Reads the next record; false at the end. Skips the unread content of the one before.
  bool next(WarcRecord& record);
  // Reads at most `most` bytes (none if it is negative) of the record's content, from where the last call stopped.
  std::string read(std::int64_t most);

  // The whole file, at most `most` bytes of it: what is no WARC. `most` bytes: there may be more.
  std::string read_plain(std::int64_t most);

  std::int64_t bytes_taken() const { return reader_.bytes_taken(); }

 private:
  bool fetch();
  bool skip_line_ends();
  std::string read_head();
  void skip(std::int64_t bytes);
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  DecompressingReader reader_;
  std::string buffer_;  // what is read and not yet taken begins at next_
  std::size_t next_ = 0;
  std::int64_t offset_ = 0;                         // of next_, in what the file holds
  std::int64_t number_ = 0, begin_ = 0, left_ = 0;  // of the record: number, place, bytes not yet read
};

}  // namespace teratron
