#include "base/files/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace teratron {

ssize_t write_some(int descriptor, std::string_view bytes) {
  while (true) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put >= 0 || (errno != EINTR && errno != EAGAIN)) return put;
    pollfd look{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (errno == EAGAIN) ::poll(&look, 1, -1);
  }
}

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
