// Memory that can be read and written only while it is open. A back end allocates from it and opens it during every
// call (Allocator::open_memory, close_memory). Its memory is then as opaque as a GPU's: code that touches a tensor
// outside of a Backend call ends with a segmentation fault at that line. Training (on several ranks too), evaluation
// and generation are tested with it, which shows on a CPU that no other room reads device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace teratron {

// Thread-safe. Blocks end where an unreadable page begins (up to the 64-byte alignment), so overruns die too, and start
// out filled with 0xFF bytes: NaN in every floating type.
class GuardedMemory {
 public:
  GuardedMemory() = default;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  void* allocate(std::int64_t bytes);  // 64-byte aligned; EnvironmentError if the system refuses
  void release(void* memory) noexcept;

  // Nests, and counts all threads: blocks are closed only when every open() has met its close(). A close() that the
  // system refuses ends the process, which would go on without a guard.
  void open();
  void close() noexcept;  // NOLINT(bugprone-exception-escape)

 private:
  struct Mapping {
    std::byte* start;
    std::size_t bytes;       // readable while open
    std::size_t with_guard;  // and the unreadable page after it
  };
  void protect_all(int protection);

  std::mutex mutex_;
  std::map<void*, Mapping> mappings_;  // by the address handed out
  int open_count_ = 0;
};

}  // namespace teratron
