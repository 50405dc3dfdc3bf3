#include "telemetry/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

AppendedFile::AppendedFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(open_for_writing(path_, O_CREAT | O_APPEND)) {}

AppendedFile::~AppendedFile() { ::close(descriptor_); }

void AppendedFile::append(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      throw_environment_error("cannot write '{}': {}; free some space or choose another place, then run again",
                              path_.string(), std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace teratron
