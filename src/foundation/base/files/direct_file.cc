#include "base/files/direct_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files/file.h"
#include "base/host/progress_count.h"

namespace teratron {

DirectFile::DirectFile(std::filesystem::path path, std::uint64_t bytes) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_failure(errno);
  if (bytes == 0) return;
  int result = 0;
  do {
    result = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    const int error = errno;
    ::close(descriptor_);
    throw_failure(error);
  }
  const int flags = ::fcntl(descriptor_, F_GETFL);
  ::fcntl(descriptor_, F_SETFL, flags | O_DIRECT);  // where it fails, the page cache is written
}

DirectFile::~DirectFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void DirectFile::throw_failure(int error) const { throw_write_error(path_, error); }

void DirectFile::stop_direct() { ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_DIRECT); }

int DirectFile::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  // The end of a file is written through the page cache, so that the file never grows beyond its size.
  if (const std::size_t rest = bytes.size() % kSector; rest != 0) {
    const std::size_t whole = bytes.size() - rest;
    if (whole > 0) {
      if (const int error = write_at(bytes.first(whole), offset); error != 0) return error;
    }
    stop_direct();
    bytes = bytes.subspan(whole), offset += whole;
  }
  bool is_retried = false;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    // The file system may take no direct writes. Another thread, which it refused too, may have ended them already.
    if (put < 0 && errno == EINVAL && !std::exchange(is_retried, true)) {
      stop_direct();
      continue;
    }
    if (put < 0) return errno;
    const auto done = static_cast<std::size_t>(put);
    bytes = bytes.subspan(done), offset += done;
    if (done % kSector != 0) stop_direct();
  }
  return 0;
}

void DirectFile::sync_and_close() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) throw_failure(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_failure(errno);
}

void write_directly(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  constexpr std::size_t kAtATime = std::size_t{4} << 20;  // larger ones gained nothing
  DirectFile file(path, bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += kAtATime) {
    const int error = file.write_at(bytes.subspan(at, std::min(kAtATime, bytes.size() - at)), at);
    if (error != 0) file.throw_failure(error);
    note_progress();
  }
  file.sync_and_close();
}

}  // namespace teratron
