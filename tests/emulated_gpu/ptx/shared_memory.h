// The shared memory of a block. Every byte knows who wrote it and who read it since which barrier, so two threads that
// touch a byte without a barrier between them are seen in whatever order they ran; and it knows of asynchronous copies
// that nobody has waited for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace teratron::emulated::ptx {

constexpr unsigned kMostWarps = 32, kMostMbarriers = 32;  // of a block

// Accesses with a smaller stamp are ordered before what a warp does next. Actors are the warps, the warps' products
// (wgmma, which reads in the asynchronous proxy) and the bulk copies that an mbarrier counts.
struct Clock {
  static constexpr unsigned kProducts = kMostWarps, kCopies = 2 * kMostWarps;  // places of the first ones
  std::array<std::uint32_t, kCopies + kMostMbarriers> before{};
  void merge(const Clock& other) {
    for (std::size_t i = 0; i < before.size(); ++i) before[i] = std::max(before[i], other.before[i]);
  }
};

class SharedMemory {
 public:
  enum class Access { kRead, kWrite };
  static constexpr std::size_t kChunk = 16;  // bytes that products read at a time

  struct Conflict {
    enum class Kind { kNone, kWritten, kRead, kCopied, kBulkCopied, kBulkArrives, kProduct, kNotFenced };
    Kind kind = Kind::kNone;
    int other = -1;  // thread, or warp of kProduct; -1: several
    explicit operator bool() const { return kind != Kind::kNone; }
    std::string text(Access access) const;
  };

  // A thread, and the stamp of its warp's last barrier.
  struct Actor {
    unsigned thread = 0;
    std::uint32_t warp_barrier = 0;
    const Clock* clock = nullptr;
  };

  // Bytes of a new block: NaN of every type.
  void reset(std::size_t bytes);
  std::size_t bytes() const { return memory_.size(); }
  std::byte* at(std::size_t address) { return memory_.data() + address; }

  // Whether an earlier access of another thread is not ordered before this one, which is noted. [address, address +
  // bytes) is within the memory.
  Conflict note(Access access, std::size_t address, std::size_t bytes, const Actor& actor);

  // note() that leaves no trace: for mbarriers, whose accesses are atomic once they are made.
  Conflict ordered(std::size_t address, std::size_t bytes, const Actor& actor) const;

  // A chunk that a product of the actor's warp reads: when it is started, and when it is done. What a thread wrote
  // there must have been given to the asynchronous proxy.
  Conflict note_product(std::size_t address, bool is_done, const Actor& actor);

  // A bulk copy, which an mbarrier counts. Nobody may touch the bytes between the two.
  Conflict start_bulk_copy(std::size_t address, std::size_t bytes, unsigned mbarrier, const Actor& actor);
  void finish_bulk_copy(std::size_t address, const std::byte* from, std::size_t bytes, unsigned mbarrier);

  // fence.proxy.async of a thread, after what it wrote, and whether it came after what it wrote there.
  void fence(unsigned thread) { fenced_.at(thread) = ++now_; }
  bool is_fenced(std::size_t address) const;

  void start_copy(std::size_t address, std::size_t bytes, const Actor& actor);
  void finish_copy(std::size_t address, const void* from, std::size_t bytes, std::size_t given, const Actor& actor);

  void pass_block_barrier() { block_barrier_ = ++now_; }
  std::uint32_t pass_warp_barrier() { return ++now_; }
  std::uint32_t tick() { return ++now_; }

 private:
  // Threads are counted from 1; 0 is nobody. Bulk copies are kBulk and the number of their mbarrier.
  struct Cell {
    std::uint32_t written = 0, read = 0;  // stamps
    std::uint16_t writer = 0, reader = 0, copier = 0;
    bool operator==(const Cell&) const = default;
  };

  bool precedes(std::uint32_t stamp, unsigned earlier_warp, const Actor& actor) const;
  bool write_precedes(const Cell& cell, const Actor& actor) const;
  Conflict product_conflict(std::size_t chunk, const Actor& actor) const;
  Conflict read_conflict(const Cell& cell, std::size_t chunk, const Actor& actor) const;
  Conflict conflict(std::size_t address, Access access, const Actor& actor) const;
  Cell noted(Cell cell, Access access, const Actor& actor) const;

  std::vector<std::byte> memory_;
  std::vector<Cell> cells_;
  // Stamps, by chunk and warp, of reads and of products' reads; the latter are empty if no product has read.
  std::vector<std::uint32_t> reads_, products_;
  std::array<std::uint32_t, kMostWarps * 32> fenced_{};  // stamps, by thread
  std::uint32_t now_ = 1, block_barrier_ = 1;            // stamps grow from block to block
};

}  // namespace teratron::emulated::ptx
