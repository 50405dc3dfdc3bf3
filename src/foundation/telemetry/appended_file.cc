#include "telemetry/appended_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/file.h"
#include "base/files/write_all.h"

namespace teratron {

AppendedFile::AppendedFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(open_for_writing(path_, O_CREAT | O_APPEND)) {
  struct stat status {};
  is_file_ = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
}

AppendedFile::~AppendedFile() { ::close(descriptor_); }

void AppendedFile::append(std::string_view bytes) {
  pending_ += bytes;
  const off_t end = is_file_ ? ::lseek(descriptor_, 0, SEEK_END) : 0;
  for (std::string_view rest = pending_; !rest.empty();) {
    const ssize_t put = write_some(descriptor_, rest);
    if (put < 0) {
      const int error = errno;
      // Readers fail at half a record, so the file is cut back. A pipe cannot be.
      const bool can_follow = is_file_ && ::ftruncate(descriptor_, end) == 0;
      if (!can_follow || pending_.size() > kMostPending) pending_.clear();
      throw_write_error(path_, error);
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  pending_.clear();
}

}  // namespace teratron
