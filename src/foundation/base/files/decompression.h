// Files as people keep text: plain, or compressed with gzip or zstd. Their first bytes tell, names do not.
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

// The most bytes of one document, or of one file that is taken in as a whole, that compressed data may stand for: a few
// of them may stand for any number. What lies uncompressed has no such limit.
inline constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;

// Reads a file as FileReader does, decompressed where it is compressed: all members of a gzip file, all frames of a
// zstd file. Memory: some 300 KiB, and zstd's window, 128 MiB at most. UserError: as FileReader's; compressed data that
// are damaged or cut short (file, and how far it was read).
class DecompressingReader {
 public:
  explicit DecompressingReader(const std::filesystem::path& path, InputPatience patience = {});
  DecompressingReader(const DecompressingReader&) = delete;
  DecompressingReader& operator=(const DecompressingReader&) = delete;
  ~DecompressingReader();

  // The next bytes, some of them at least; 0: the end.
  std::size_t read(std::span<char> to);
  // The next `most` bytes, which read() will give; fewer at the end, or before what cannot be read, which read() tells.
  // Valid until the next call.
  std::string_view peek(std::size_t most);
  bool is_compressed() const { return decoder_ != nullptr; }
  // Bytes of the file itself that are behind what was read.
  std::int64_t bytes_taken() const { return fetched_ - static_cast<std::int64_t>(input_.size() - next_); }

  class Decoder;  // of one kind of compression

 private:
  bool fetch();
  std::size_t read_on(std::span<char> to);
  std::size_t read_plain(std::span<char> to);
  [[noreturn]] void throw_damaged(const std::string& cause) const;

  std::string name_;
  FileReader file_;
  std::vector<char> input_;  // what is fetched and not yet taken begins at next_
  std::size_t next_ = 0;
  std::int64_t fetched_ = 0;  // bytes of the file, in all
  std::unique_ptr<Decoder> decoder_;
  std::string peeked_;  // what peek() has shown and read() has not given begins at peeked_next_
  std::size_t peeked_next_ = 0;
  std::exception_ptr peek_fault_;  // what is wrong behind it
};

// All that a DecompressingReader gives of `path`. UserError: as its; compressed data that stand for more than
// `most_unpacked` bytes.
std::string read_decompressed(const std::filesystem::path& path, std::size_t most_unpacked = kMostUnpacked);

// UserError where a document of `bytes` bytes is more than `most`; `what` is too large: "'a.gz' holds one text that".
void require_unpacked_size(std::size_t bytes, std::size_t most, const std::string& what);

}  // namespace teratron
