// A file that is read at any place while others may change it. A memory map would end the process by SIGBUS where the
// file is cut short or its disk fails; these reads are errors that name the file, the place and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace teratron {

// Keeps the file open, so that it may be removed or replaced meanwhile. Movable; safe to read from many threads.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path);  // UserError: missing, unreadable, not a regular file
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  ~RandomAccessFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }             // bytes, when it was opened
  bool is_named(const std::filesystem::path& path) const;  // whether `path` leads to this very file
  // The bytes from `offset` on; they lie within size(). EnvironmentError: the disk fails, or the file is shorter now.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  // Called after a read, it vouches for what was read. EnvironmentError where the file has another size than when it
  // was opened. Where its times say that it may have been written to since, `content_fault` looks at its content, once
  // for each such change, and returns what differs: an EnvironmentError with that text. Nothing differs after a
  // `touch`, a new owner or a new name: then the change is noted, and the file is as good as before.
  void require_unchanged(const std::function<std::string()>& content_fault) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  struct Seen;
  std::unique_ptr<Seen> seen_;  // the times of the content that is vouched for
};

}  // namespace teratron
