#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Open for reading, or say in the user's words why not.
int open_for_reading(const std::filesystem::path& path, int flags = 0) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (descriptor < 0) {
    throw_user_error("cannot read '{}': {}; check the path and its permissions", path.string(), std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw_user_error("cannot read '{}': it is a folder, a file is needed", path.string());
  }
  return descriptor;
}

[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error) {
  throw_environment_error("cannot write '{}': {}; free some space or choose another place, then run again",
                          path.string(), std::strerror(error));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const int descriptor = open_for_reading(path);
  std::string content;
  std::size_t used = 0;
  while (true) {
    content.resize(used + kBufferBytes);
    const ssize_t got = ::read(descriptor, content.data() + used, kBufferBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int error = errno;
      ::close(descriptor);
      if (got < 0) throw_user_error("cannot read '{}': {}", path.string(), std::strerror(error));
      content.resize(used);
      return content;
    }
    used += static_cast<std::size_t>(got);
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = open_for_reading(path, O_NONBLOCK);  // does not wait for a pipe's writer
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw_user_error("cannot map '{}': it is a pipe or a device, a regular file is needed", path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    ::close(descriptor);
    if (address == MAP_FAILED) throw_user_error("cannot map '{}': {}", path.string(), std::strerror(error));
    bytes_ = {static_cast<const std::byte*>(address), size};
  } else {
    ::close(descriptor);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_.string() + ".partial") {
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw_write_error(path_, errno);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_) ::unlink(partial_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  bytes_written_ += bytes.size();
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_write_error(path_, errno);
    done += static_cast<std::size_t>(put);
  }
  buffer_.clear();
}

void AtomicFile::sync() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) throw_write_error(path_, errno);  // EINVAL: a pipe or device
}

void AtomicFile::commit() {
  sync();
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_write_error(path_, errno);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_write_error(path_, errno);
  committed_ = true;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_folders(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_environment_error("cannot create the folder '{}': {}", path.string(), error.message());
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_write_error(folder, errno);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (result != 0 && error != EINVAL) throw_write_error(folder, error);
}

}  // namespace teratron
