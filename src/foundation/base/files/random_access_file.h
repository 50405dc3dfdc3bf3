// File with reads at any offset while others may change it. A memory map would end the process by SIGBUS where the file
// is truncated or its disk fails. These reads throw errors with the file, the offset and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace teratron {

// Keeps the file open: it may be removed or replaced meanwhile. Movable. Threads may read at the same time.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path);  // UserError: missing, unreadable, not a regular file
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  ~RandomAccessFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }             // bytes when it was opened
  bool is_named(const std::filesystem::path& path) const;  // whether `path` leads to this file
  // Reads the bytes from `offset` on, which lie within size(). EnvironmentError: the disk fails, or the file is shorter
  // now.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  // Checks, after a read, that the file has not changed. EnvironmentError: its size differs from when it was opened.
  // Where its times say that it may have been written to, `content_fault` compares its content, once for each such
  // change, and returns the difference, which becomes an EnvironmentError. It returns "" after a `touch`, a new owner
  // or a new name; then the new times are recorded.
  void require_unchanged(const std::function<std::string()>& content_fault) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  struct Seen;
  std::unique_ptr<Seen> seen_;  // times of the content that was checked last
};

}  // namespace teratron
