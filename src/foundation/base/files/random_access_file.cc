#include "base/files/random_access_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/open_file_name.h"
#include "base/host/progress_count.h"

namespace teratron {
namespace {

// Raises the soft limit to the hard one: a corpus of many shards may need more files than the soft limit allows.
bool raise_limit_of_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// O_NONBLOCK: opening a pipe does not wait for its writer.
int open_descriptor(const std::filesystem::path& path) {
  const auto open = [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); };
  const int descriptor = open();
  return descriptor < 0 && errno == EMFILE && raise_limit_of_open_files() ? open() : descriptor;
}

bool is_same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

// A writer can set the time of the last modification back, but not that of the last change of the inode.
struct RandomAccessFile::Seen {
  std::mutex mutex;  // held while the content is compared: other readers wait for the result
  timespec modified{}, changed{};
};

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open_descriptor(path)) {
  if (descriptor_ < 0 && (errno == EMFILE || errno == ENFILE)) {
    throw_environment_error("cannot open '{}': {}; {}", path.string(), std::strerror(errno),
                            remedy_of_write_error(errno));
  }
  if (descriptor_ < 0) {
    throw_user_error("cannot read '{}': {}; check the path and its permissions", path.string(), std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    throw_user_error("cannot read '{}': it is a folder, a pipe or a device; a regular file is needed", path.string());
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  seen_ = std::make_unique<Seen>();
  seen_->modified = status.st_mtim;
  seen_->changed = status.st_ctim;
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      seen_(std::move(other.seen_)) {}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool RandomAccessFile::is_named(const std::filesystem::path& path) const {
  return names_open_file(path, descriptor_, LastLink::kFollowed);
}

void RandomAccessFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  check(offset <= size_ && out.size() <= size_ - offset, "RandomAccessFile: read outside of the file");
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw_environment_error("cannot read '{}' at byte {}: {}; look at the disk that it lies on", path_.string(),
                              offset, std::strerror(errno));
    }
    if (got == 0) {
      throw_environment_error("'{}' was cut short while it was read: it ends at byte {} or before, and had {} bytes",
                              path_.string(), offset, size_);
    }
    note_progress();
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void RandomAccessFile::require_unchanged(const std::function<std::string()>& content_fault) const {
  const std::lock_guard lock(seen_->mutex);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    throw_environment_error("cannot look at '{}': {}", path_.string(), std::strerror(errno));
  }
  if (static_cast<std::uint64_t>(status.st_size) != size_) {
    throw_environment_error("'{}' was changed while it was read: it has {} bytes now, and had {}", path_.string(),
                            status.st_size, size_);
  }
  if (is_same_time(status.st_mtim, seen_->modified) && is_same_time(status.st_ctim, seen_->changed)) return;
  if (const std::string fault = content_fault(); !fault.empty()) {
    throw_environment_error("'{}' was changed while it was read: {}", path_.string(), fault);
  }
  seen_->modified = status.st_mtim;  // read before the comparison: a write during it is another change
  seen_->changed = status.st_ctim;
}

}  // namespace teratron
