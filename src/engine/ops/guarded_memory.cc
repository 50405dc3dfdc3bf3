#include "ops/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/round_up.h"

namespace teratron {
namespace {

constexpr std::size_t kAlignment = 64;

void protect(std::byte* start, std::size_t bytes, int protection) {
  check(::mprotect(start, bytes, protection) == 0, "the protection of guarded memory can be changed");
}

}  // namespace

GuardedMemory::~GuardedMemory() {
  for (const auto& [memory, mapping] : mappings_) ::munmap(mapping.start, mapping.with_guard);
}

void* GuardedMemory::allocate(std::int64_t bytes) {
  check(bytes >= 0, "a block's size is not negative");
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t wanted = round_up(std::max<std::size_t>(static_cast<std::size_t>(bytes), 1), kAlignment);
  Mapping mapping{nullptr, round_up(wanted, page), round_up(wanted, page) + page};
  void* start = ::mmap(nullptr, mapping.with_guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    throw_environment_error("cannot allocate {} bytes of guarded memory: {}", bytes, std::strerror(errno));
  }
  mapping.start = static_cast<std::byte*>(start);
  void* const memory = mapping.start + mapping.bytes - wanted;

  const std::lock_guard lock(mutex_);
  mappings_.emplace(memory, mapping);
  protect(mapping.start, mapping.bytes, PROT_READ | PROT_WRITE);
  std::memset(mapping.start, 0xFF, mapping.bytes);
  if (open_count_ == 0) protect(mapping.start, mapping.bytes, PROT_NONE);
  return memory;
}

void GuardedMemory::release(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = mappings_.find(memory);
  if (found == mappings_.end()) return;
  ::munmap(found->second.start, found->second.with_guard);
  mappings_.erase(found);
}

void GuardedMemory::open() {
  const std::lock_guard lock(mutex_);
  if (open_count_ == 0) protect_all(PROT_READ | PROT_WRITE);
  ++open_count_;
}

void GuardedMemory::close() noexcept {  // NOLINT(bugprone-exception-escape): it ends the process
  const std::lock_guard lock(mutex_);
  --open_count_;
  if (open_count_ == 0) protect_all(PROT_NONE);
}

void GuardedMemory::protect_all(int protection) {
  for (const auto& [memory, mapping] : mappings_) protect(mapping.start, mapping.bytes, protection);
}

}  // namespace teratron
