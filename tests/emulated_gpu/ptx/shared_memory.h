// The shared memory of a block. Every byte knows who wrote it and who read it since which barrier, so two threads that
// touch a byte without a barrier between them are seen in whatever order they ran; and it knows of asynchronous copies
// that nobody has waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace teratron::emulated::ptx {

class SharedMemory {
 public:
  enum class Access { kRead, kWrite };

  struct Conflict {
    enum class Kind { kNone, kWritten, kRead, kCopied } kind = Kind::kNone;
    int other = -1;  // thread; -1: several
    explicit operator bool() const { return kind != Kind::kNone; }
    std::string text(Access access) const;
  };

  // A thread, and the stamp of its warp's last barrier.
  struct Actor {
    unsigned thread = 0;
    std::uint32_t warp_barrier = 0;
  };

  // Bytes of a new block: NaN of every type.
  void reset(std::size_t bytes);
  std::size_t bytes() const { return memory_.size(); }
  std::byte* at(std::size_t address) { return memory_.data() + address; }

  // Whether an earlier access of another thread is not ordered before this one, which is noted. [address, address +
  // bytes) is within the memory.
  Conflict note(Access access, std::size_t address, std::size_t bytes, const Actor& actor);

  void start_copy(std::size_t address, std::size_t bytes, const Actor& actor);
  void finish_copy(std::size_t address, const void* from, std::size_t bytes, std::size_t given, const Actor& actor);

  void pass_block_barrier() { block_barrier_ = ++now_; }
  std::uint32_t pass_warp_barrier() { return ++now_; }

 private:
  // Threads are counted from 1; 0 is nobody.
  struct Cell {
    std::uint32_t written = 0, read = 0;  // stamps
    std::uint16_t writer = 0, reader = 0, copier = 0;
    bool operator==(const Cell&) const = default;
  };

  bool precedes(std::uint32_t stamp, unsigned earlier_warp, const Actor& actor) const;
  Conflict conflict(const Cell& cell, Access access, const Actor& actor) const;
  Cell noted(Cell cell, Access access, const Actor& actor) const;

  std::vector<std::byte> memory_;
  std::vector<Cell> cells_;
  std::uint32_t now_ = 1, block_barrier_ = 1;  // stamps grow from block to block
};

}  // namespace teratron::emulated::ptx
