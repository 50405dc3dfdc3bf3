// A new file of a known size, written past the page cache where the file system can (O_DIRECT): that is faster and
// takes a fraction of the processor time (bench/results/checkpoint.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace teratron {

// Its bytes and its name are on the disk after sync_and_close(); without that call its content is undefined. Failures
// are EnvironmentErrors, as AtomicFile's.
class DirectFile {
 public:
  // Unit of direct writes: address, offset and length are multiples of it. All disks that we know accept it.
  static constexpr std::size_t kSector = 4096;

  // Reserves `bytes`, so that a full disk fails here.
  DirectFile(std::filesystem::path path, std::uint64_t bytes);
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile();

  // Writes at `offset` and returns 0, or errno. Several threads may write at a time. `offset`, the address and the
  // length are multiples of kSector, except for the length at the file's end.
  int write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  void sync_and_close();

  [[noreturn]] void throw_failure(int error) const;  // errno of a write

 private:
  void stop_direct();

  const std::filesystem::path path_;
  int descriptor_ = -1;
};

// Writes a file. Where the memory of `bytes` does not begin at a multiple of DirectFile::kSector, it goes through the
// page cache.
void write_directly(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace teratron
