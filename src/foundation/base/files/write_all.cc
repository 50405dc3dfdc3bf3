#include "base/files/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace teratron {

int write_all(int descriptor, std::string_view content) {
  if (::ftruncate(descriptor, 0) != 0) return errno;
  off_t offset = 0;
  while (!content.empty()) {
    const ssize_t put = ::pwrite(descriptor, content.data(), content.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(put));
    offset += put;
  }
  return ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
}

}  // namespace teratron
