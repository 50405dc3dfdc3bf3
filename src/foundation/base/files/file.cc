#include "base/files/file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/open_file_name.h"
#include "base/files/write_all.h"
#include "base/files/write_target.h"
#include "base/host/progress_count.h"

namespace teratron {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Opens for reading, or throws a UserError. It never waits for a pipe's writer.
int open_for_reading(const std::filesystem::path& path, struct stat& status) {
  // Standard input that was closed is open for writing alone (open_closed_standard_streams).
  if (names_standard_input(path) && (::fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY) {
    throw_user_error("cannot read standard input: it is closed; give it a file or a pipe, or name a file");
  }
  // Other programs share standard input, so its flags stay.
  int descriptor = is_standard_stream(path) ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && errno == ENXIO) {  // a socket, which cannot be opened by a name
    descriptor = copied_descriptor(path);
    if (descriptor < 0) errno = ENXIO;
  }
  if (descriptor < 0) {
    throw_user_error("cannot read {}: {}; check the path and its permissions", name_of_input(path),
                     std::strerror(errno));
  }
  if (::fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw_user_error("cannot read {}: it is a folder, a file is needed", name_of_input(path));
  }
  return descriptor;
}

constexpr auto kWaitForAnother = std::chrono::seconds(2);

// Returns false where another process has the lock, and true where the file system has no locks.
bool take_lock(int descriptor) {
  int result = 0;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno != EWOULDBLOCK;
}

}  // namespace

bool names_standard_input(const std::filesystem::path& path) {
  return is_standard_stream(path) || path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0";
}

bool is_stream(const std::filesystem::path& path) {
  std::error_code error;
  return names_standard_input(path) || std::filesystem::is_fifo(path, error) || std::filesystem::is_socket(path, error);
}

std::string_view remedy_of_write_error(int error) {
  switch (error) {
    case EROFS: return "make its disk writable";
    case EACCES:
    case EPERM: return "check its permissions";
    case EISDIR: return "move the folder of that name away";
    case ENOSPC:
    case EDQUOT: return "free some space";
    case EFBIG: return "raise the limit of the size of files (ulimit -f)";
    case EMFILE: return "raise the limit of open files (ulimit -n)";
    case ENFILE: return "end programs that hold files open";
    default: return "check the path and its disk";
  }
}

void throw_write_error(const std::filesystem::path& path, int error) {
  std::error_code ignored;
  if (path.has_parent_path() && !std::filesystem::exists(path.parent_path(), ignored)) {
    throw_environment_error("cannot write '{}': there is no folder '{}'; make it first, or choose another place",
                            path.string(), path.parent_path().string());
  }
  const auto text = [&](std::string_view advice) {
    return fmt::format("cannot write '{}': {}; {}", path.string(), std::strerror(error), advice);
  };
  if (error == EPIPE) throw OutputClosed(text("its reader has ended"));
  const bool helps_elsewhere = error != EFBIG && error != EMFILE && error != ENFILE;
  const std::string advice =
      text(fmt::format("{}{}", remedy_of_write_error(error), helps_elsewhere ? " or choose another place" : ""));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) throw NoSpaceError(advice);
  throw EnvironmentError(advice);
}

void throw_link_loop(const std::filesystem::path& path) {
  throw_user_error("cannot write '{}': its symbolic links lead to one another; delete them, or choose another place",
                   path.string());
}

std::string name_of_input(const std::filesystem::path& path) {
  return is_standard_stream(path) ? "standard input" : fmt::format("'{}'", path.string());
}

FileReader::FileReader(const std::filesystem::path& path, InputPatience patience)
    : name_(name_of_input(path)), patience_(patience), shares_flags_(is_standard_stream(path)) {
  struct stat status {};
  descriptor_ = open_for_reading(path, status);
  struct statfs system {};
  shares_flags_ = shares_flags_ || S_ISSOCK(status.st_mode);
  const bool is_pipe = S_ISFIFO(status.st_mode) && !shares_flags_;  // standard input has its writer already
  is_named_pipe_ = is_pipe && ::fstatfs(descriptor_, &system) == 0 && system.f_type != PIPEFS_MAGIC;
  is_device_ = S_ISCHR(status.st_mode);
  if (!S_ISBLK(status.st_mode)) return;
  ::close(descriptor_);
  throw_user_error("cannot read {}: it is a disk, a file is needed", name_);
}

FileReader::~FileReader() { ::close(descriptor_); }

std::size_t FileReader::read(std::span<char> to) {
  const auto began = std::chrono::steady_clock::now();
  notices_ = 0;
  while (true) {
    pollfd look{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (shares_flags_ && ::poll(&look, 1, 0) == 0) {  // read() would wait without a notice
      wait_for_data(began, true);
      continue;
    }
    const ssize_t got = ::read(descriptor_, to.data(), to.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) throw_user_error("cannot read {}: {}", name_, std::strerror(errno));
    // Zero bytes mean the end, except for a named pipe that no writer has opened yet.
    const bool awaits_writer =
        got == 0 && is_named_pipe_ && bytes_read_ == 0 && (::poll(&look, 1, 0) == 0 || (look.revents & POLLHUP) == 0);
    if (got >= 0 && !awaits_writer) {
      bytes_read_ += static_cast<std::size_t>(got);
      note_progress();
      if (is_device_ && bytes_read_ > kMostOfADevice) {
        throw_user_error("{} is a device that has given {} MiB and no end; a file is needed", name_,
                         kMostOfADevice >> 20);
      }
      return static_cast<std::size_t>(got);
    }
    wait_for_data(began, !awaits_writer);
  }
}

void FileReader::wait_for_data(std::chrono::steady_clock::time_point began, bool has_writer) {
  constexpr int kTick = 20;  // milliseconds: a new writer does not wake a poll, its bytes do
  pollfd look{.fd = descriptor_, .events = POLLIN, .revents = 0};
  ::poll(&look, 1, kTick);
  const auto waited = std::chrono::steady_clock::now() - began;
  if (!has_writer && waited > patience_.writer) {
    throw_user_error("cannot read {}: it is a pipe that nobody writes to; start its writer first, or name a file",
                     name_);
  }
  if (waited < (notices_ + 1) * patience_.notice) return;
  ++notices_;
  std::fputs(fmt::format("waiting for {} {} ({:.0f} s)\n", has_writer ? "more of" : "somebody to write to", name_,
                         std::chrono::duration<double>(waited).count())
                 .c_str(),
             stderr);
}

std::string read_file(const std::filesystem::path& path, InputPatience patience) {
  FileReader reader(path, patience);
  std::string content;
  std::size_t used = 0;
  while (true) {
    content.resize(used + kBufferBytes);
    const std::size_t got = reader.read(std::span(content).subspan(used));
    used += got;
    if (got == 0) break;
  }
  content.resize(used);
  return content;
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  const int descriptor = open_for_reading(path, status);
  if (!S_ISREG(status.st_mode)) {
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

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = static_cast<std::size_t>(part.data() - bytes_.data()), begin = first / page * page;
  // A hint: pages dropped too early are read again, so a refusal costs memory and nothing else.
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, first + part.size() - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::filesystem::path AtomicFile::target_of(const std::filesystem::path& path) {
  if (is_standard_stream(path)) return {};
  const WriteTarget target = write_target(path);
  return target.is_replaced ? target.path : std::filesystem::path();
}

std::filesystem::path AtomicFile::partial_of(const std::filesystem::path& path) {
  const std::filesystem::path target = target_of(path);
  return target.empty() ? "" : target.string() + ".partial";
}

AtomicFile::AtomicFile(std::filesystem::path path, std::uint64_t kept) : path_(std::move(path)), bytes_written_(kept) {
  buffer_.reserve(kBufferBytes);
  if (is_standard_stream(path_)) {
    path_ = "standard output";  // for messages
    descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) throw_write_error(path_, errno);
    return;
  }
  const WriteTarget target = write_target(path_);
  if (target.is_replaced) {
    path_ = target.path;
    partial_ = path_.string() + ".partial";
    open_partial();
    const auto size = static_cast<off_t>(kept);
    const bool is_cut = ::ftruncate(descriptor_, size) == 0 || (kept == 0 && errno == EINVAL);  // a link to a device
    if (is_cut && ::lseek(descriptor_, size, SEEK_SET) == size) return;
    const int error = errno;
    ::close(descriptor_);
    throw_write_error(path_, error);
  }
  descriptor_ = open_for_writing(path_, O_APPEND);
}

// Changes nothing in the file before this process has its lock and the file still has its name.
void AtomicFile::open_partial() {
  struct stat old {};
  struct stat partial {};
  const bool replaces = ::stat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  // Nobody may read the partial file of a private one. Its owner may always go on with it.
  const mode_t mode = replaces ? (old.st_mode & 0777) | S_IRUSR | S_IWUSR : 0644;
  const auto end = std::chrono::steady_clock::now() + kWaitForAnother;
  while (true) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    if (descriptor_ < 0) throw_write_error(path_, errno);
    if (take_lock(descriptor_) && names_open_file(partial_, descriptor_, LastLink::kFollowed)) {
      // An earlier run may have left another mode, and the umask narrows it. Some file systems have none.
      if (replaces && ::fstat(descriptor_, &partial) == 0 && S_ISREG(partial.st_mode)) ::fchmod(descriptor_, mode);
      return;
    }
    ::close(std::exchange(descriptor_, -1));
    if (std::chrono::steady_clock::now() > end) {
      throw_environment_error(
          "cannot write '{}': another process is writing it; wait for its end, or choose another place",
          path_.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

AtomicFile::~AtomicFile() {
  // Deleted before the lock is released: afterwards it may be another process's file.
  if (descriptor_ >= 0 && !committed_ && !keeps_partial_ && !partial_.empty()) ::unlink(partial_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  bytes_written_ += bytes.size();
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::flush() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t put = write_some(descriptor_, std::string_view(buffer_).substr(done));
    if (put < 0) throw_write_error(path_, errno);
    done += static_cast<std::size_t>(put);
    note_progress();
  }
  buffer_.clear();
}

void AtomicFile::sync() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) throw_write_error(path_, errno);  // EINVAL: a pipe or device
}

void AtomicFile::commit() {
  sync();
  if (!partial_.empty() && ::rename(partial_.c_str(), path_.c_str()) != 0) throw_write_error(path_, errno);
  committed_ = true;
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_write_error(path_, errno);
  if (!partial_.empty()) sync_folder(folder_of(path_));  // else a power failure may take the name back
}

int open_for_writing(const std::filesystem::path& path, int flags) {
  // A copied descriptor shares the offset in the file, so that neither holder writes over the other.
  if (const int copied = copied_descriptor(path); copied >= 0) return copied;
  // Without O_NONBLOCK, opening a pipe that no process reads would wait.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0644);
  if (descriptor < 0 && errno == ENXIO) {
    throw_environment_error("cannot write '{}': it is a pipe that nobody reads; start its reader first, or name a file",
                            path.string());
  }
  if (descriptor < 0) throw_write_error(path, errno);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_folders(const std::filesystem::path& path) {
  if (path.empty()) throw_user_error("the name of a folder to write is empty; give one");
  std::error_code error;
  std::vector<std::filesystem::path> parents;  // of folders that are new
  for (std::filesystem::path at = path; !at.empty() && !std::filesystem::exists(at, error); at = at.parent_path()) {
    parents.push_back(folder_of(at));
  }
  std::filesystem::create_directories(path, error);
  if (error == std::errc::not_a_directory || error == std::errc::file_exists) {
    throw_user_error(
        "cannot create the folder '{}': there is a file at its place, or at that of a folder above it; name another "
        "folder",
        path.string());
  }
  if (error == std::errc::too_many_symbolic_link_levels) throw_link_loop(path);
  if (error) {
    throw_environment_error("cannot create the folder '{}': {}; {} or choose another place", path.string(),
                            error.message(), remedy_of_write_error(error.value()));
  }
  for (const std::filesystem::path& parent : parents) sync_folder(parent);
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 && errno == EACCES) return;  // one that may be written, but not read, cannot be synced
  if (descriptor < 0) throw_write_error(folder, errno);
  const int result = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  if (result != 0 && error != EINVAL) throw_write_error(folder, error);
}

}  // namespace teratron
