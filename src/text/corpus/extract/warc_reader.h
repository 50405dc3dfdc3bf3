// WARC files, as crawlers write them: ISO 28500, versions 1.0 and 1.1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/files/decompression.h"

namespace teratron {

struct WarcRecord {
  std::string type;  // "response", "request", "warcinfo" ..., in small letters
  std::string url, date, content_type;
  std::string seen_type;    // what its writer took the payload for; empty: not said
  std::int64_t length = 0;  // of its content, as the head says
  std::int64_t number = 0;  // in the file, from 1
};

// Reads a file record by record; memory does not grow with a record. UserError, with the file, the record's number and
// where it begins (in what a compressed file holds): what is no WARC, a head without a length, a record that is cut
// short or whose length is wrong, damaged compression.
class WarcReader {
 public:
  explicit WarcReader(const std::filesystem::path& path);

  // Whether the file begins as WARC does.
  bool is_warc();
  // Whether a file that is no WARC begins with `first`, white space aside.
  bool begins_with(char first);
  // The next record; false at the end. What was not read of the one before is passed over.
  bool next(WarcRecord& record);
  // At most `most` bytes (none where it is negative) of the record's content, from where the last call left off.
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
