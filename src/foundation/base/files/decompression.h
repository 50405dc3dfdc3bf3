// Text files, plain or compressed with gzip or zstd, recognised by their first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"

namespace teratron {

// Limit of the decompressed bytes of one document, or of one file that is read as a whole: a few compressed bytes may
// stand for any number. Plain files have no such limit.
inline constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;

// Reads a file as FileReader does and decompresses it: all members of a gzip file, all frames of a zstd file. It takes
// some 300 KiB of memory and zstd's window of at most 128 MiB. UserError: as FileReader's; a larger window; damaged or
// truncated data, with the offset.
class DecompressingReader {
 public:
  explicit DecompressingReader(const std::filesystem::path& path, InputPatience patience = {});
  DecompressingReader(const DecompressingReader&) = delete;
  DecompressingReader& operator=(const DecompressingReader&) = delete;
  ~DecompressingReader();

  // Reads at least one byte; returns how many, 0 at the end.
  std::size_t read(std::span<char> to);
  // Shows the next `most` bytes, which read() will return. Fewer: the end, or an error that read() will throw. Valid
  // until the next call.
  std::string_view peek(std::size_t most);
  bool is_compressed() const { return decoder_ != nullptr; }
  // Bytes of the file itself that were consumed.
  std::int64_t bytes_taken() const { return fetched_ - static_cast<std::int64_t>(input_.size() - next_); }

  class Decoder;

 private:
  bool fetch();
  std::size_t read_on(std::span<char> to);
  std::size_t read_plain(std::span<char> to);
  [[noreturn]] void throw_damaged(const std::string& cause) const;

  std::string name_;
  FileReader file_;
  std::vector<char> input_;  // fetched bytes; next_: the first that is not decoded
  std::size_t next_ = 0;
  std::int64_t fetched_ = 0;  // bytes of the file so far
  std::unique_ptr<Decoder> decoder_;
  std::string peeked_;  // bytes of peek(); peeked_next_: the first that read() has not returned
  std::size_t peeked_next_ = 0;
  std::exception_ptr peek_fault_;  // error after them
};

// Reads all of `path` by a DecompressingReader. UserError: as its; compressed data of more than `most_unpacked` bytes.
std::string read_decompressed(const std::filesystem::path& path, std::size_t most_unpacked = kMostUnpacked);

// UserError: `bytes` is more than `most`. `what` begins the message: "'a.gz' holds one text that".
void require_unpacked_size(std::size_t bytes, std::size_t most, const std::string& what);

}  // namespace teratron
