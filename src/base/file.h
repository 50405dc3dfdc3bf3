// Files: whole reads, read-only maps, and writes that are seen either complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace teratron {

// The whole content of `path`. UserError if it is missing or unreadable (says which, and what to check).
std::string read_file(const std::filesystem::path& path);

// A read-only memory map of a whole file; an empty file maps to an empty span. Movable.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // UserError: missing, unreadable, not a regular file
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Writes to `path` + ".partial" and renames it onto `path` in commit(); without commit() nothing is left behind.
// Every failure (full disk, no permission, missing folder) is an EnvironmentError that names the file and the cause.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  // Any span of plain values, in this machine's (little-endian) byte order.
  template <class T>
  void write_values(std::span<const T> values) {
    write(std::as_bytes(values));
  }
  std::uint64_t bytes_written() const { return bytes_written_; }
  void sync();    // all that was written so far is on the disk (fsync): a full disk shows here at the latest
  void commit();  // sync, then rename

 private:
  void flush();
  std::filesystem::path path_, partial_;
  std::string buffer_;
  std::uint64_t bytes_written_ = 0;
  int descriptor_ = -1;
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Creates `path` and its parents. EnvironmentError where that fails.
void make_folders(const std::filesystem::path& path);

// Makes renames inside `folder` durable (fsync of the folder).
void sync_folder(const std::filesystem::path& folder);

}  // namespace teratron
