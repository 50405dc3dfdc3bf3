// A new file of a known size, written past the page cache where the file system can (O_DIRECT): that is faster and
// takes a fraction of the processor time (bench/results/checkpoint.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace teratron {

// It has its bytes and its name on the disk after sync_and_close(); without it, what is there has no meaning. Failures
// are EnvironmentErrors as AtomicFile's.
class DirectFile {
 public:
  // Addresses, places and lengths of direct writes are multiples of it on every disk we know of.
  static constexpr std::size_t kSector = 4096;

  // Makes room for `bytes`, so that a full disk shows now.
  DirectFile(std::filesystem::path path, std::uint64_t bytes);
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile();

  // Writes at `offset` and returns 0, or errno. Several threads may write at a time. All multiples of kSector, but for
  // the end of the file.
  int write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  void sync_and_close();

  [[noreturn]] void throw_failure(int error) const;  // errno of a write

 private:
  void stop_direct();

  const std::filesystem::path path_;
  int descriptor_ = -1;
};

// A file of `bytes`. Those that do not begin at a multiple of DirectFile::kSector go through the page cache.
void write_directly(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace teratron
