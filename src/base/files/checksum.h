// XXH3 with 64 bits (github.com/Cyan4973/xxHash): finds damage on disks and wires at the speed of memory. It does not
// protect from a person who wants to deceive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace teratron {

// Of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  std::string digest() const;  // of all bytes so far; 16 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string checksum_of(std::span<const std::byte> bytes);
// All bytes that this process has given to Checksums so far: how far work that compares or writes checksums is.
std::uint64_t checksummed_bytes();

inline std::string checksum_of(std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); }

}  // namespace teratron
