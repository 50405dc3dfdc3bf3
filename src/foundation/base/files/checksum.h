// XXH3 with 64 bits (github.com/Cyan4973/xxHash). It finds damage by disks and networks at the speed of memory. It does
// not protect against deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Checksum of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string digest() const;  // all bytes so far; 16 hexadecimal digits

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// Checksums of the blocks of bytes that come in pieces: the low 32 bits of a block's XXH3. A reader of one block can
// check it without the others.
class BlockChecksums {
 public:
  explicit BlockChecksums(std::size_t block_bytes);
  ~BlockChecksums();
  BlockChecksums(const BlockChecksums&) = delete;
  BlockChecksums& operator=(const BlockChecksums&) = delete;

  void update(std::span<const std::byte> bytes);
  std::vector<std::uint32_t> digests() const;  // all bytes so far; the last block may be short

 private:
  std::unique_ptr<Checksum::State> state_;
  std::size_t block_bytes_, filled_ = 0;  // filled_: bytes of the current block
  std::vector<std::uint32_t> done_;
};
std::uint32_t block_checksum_of(std::span<const std::byte> block);

std::string checksum_of(std::span<const std::byte> bytes);
// Bytes that Checksums of this process have taken so far. They measure the progress of reading and writing checkpoints.
std::uint64_t checksummed_bytes();

inline std::string checksum_of(std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); }

}  // namespace teratron
