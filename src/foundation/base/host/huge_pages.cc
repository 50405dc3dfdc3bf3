#include "base/host/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace teratron {

HugePages::HugePages(std::size_t bytes, bool now) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw_environment_error("the system gives no {} MiB of memory: {}", bytes >> 20, std::strerror(errno));
  }
  // Advice only: where the system refuses, small pages work as well, and pages are taken as they are used.
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  if (now) ::madvise(memory, bytes, MADV_POPULATE_WRITE);
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

HugePages::~HugePages() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace teratron
