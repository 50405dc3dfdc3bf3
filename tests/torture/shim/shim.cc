// A library to preload (LD_PRELOAD) that sees every call by which a program changes files below one folder. It logs
// them for Disk (disk.h), and kills the program at one of them, or lets one fail. Calls are made and logged one at a
// time, also those of several processes, so the log has their order.
//
// It knows nothing of files that C's stdio or mmap change; Disk compares its result with the folder, so that a program
// that begins to use those is noticed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "torture/calls.h"

namespace teratron::torture {
namespace {

constexpr int kMostDescriptors = 1 << 16;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

struct Plan {
  Action action = Action::kNothing;
  Call call = Call::kOpen;
  long number = 0;
  int error = 0;
};

class Watch {
 public:
  // Never destroyed: a program makes calls until its very end.
  static Watch& get() {
    static Watch* const watch = new Watch;
    return *watch;
  }

  // Canonical path of `name` in the folder that `at` stands for, or "" where it is not below the watched folder. The
  // last part is followed where it is a link and `follows`.
  std::string path_of(int at, const char* name, bool follows = false) const {
    if (folder_.empty() || name == nullptr || *name == '\0') return "";
    std::string path = name;
    if (path.front() != '/') path = folder_of(at) + "/" + path;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    char real[PATH_MAX];
    if (follows && ::realpath(path.c_str(), real) != nullptr) return below(real);
    const std::size_t slash = path.rfind('/');
    const std::string parent = path.substr(0, slash), last = path.substr(slash + 1);
    if (::realpath(parent.empty() ? "/" : parent.c_str(), real) == nullptr) return "";
    return below(std::string(real) + "/" + last);
  }

  std::uint64_t file_of(int descriptor) const {
    return descriptor >= 0 && descriptor < kMostDescriptors ? files_[static_cast<std::size_t>(descriptor)].load() : 0;
  }
  void forget(int descriptor) {
    if (descriptor >= 0 && descriptor < kMostDescriptors) files_[static_cast<std::size_t>(descriptor)] = 0;
  }
  std::uint64_t number_file(int descriptor) {
    const std::uint64_t number = (static_cast<std::uint64_t>(::getpid()) << 32) + ++opened_;
    if (descriptor < kMostDescriptors) files_[static_cast<std::size_t>(descriptor)] = number;
    return number;
  }

  // Makes a call that returns -1 where it fails, unless the plan says otherwise, and logs it by `log` where it
  // succeeds. `half` makes half of it.
  template <class Do, class Half, class Log>
  auto make(Call call, bool needs_space, const Do& once, const Half& half, const Log& log) -> decltype(once()) {
    const std::scoped_lock lock(mutex_);
    const Turn turn(log_);  // until the call is logged
    const bool is_chosen = plan_.action != Action::kNothing && call == plan_.call && ++made_ == plan_.number;
    disk_is_full_ = disk_is_full_ || (is_chosen && plan_.action == Action::kFillDisk);
    if (disk_is_full_ && needs_space) return fails(plan_.error);
    const Action action = is_chosen ? plan_.action : Action::kNothing;
    if (action == Action::kKillBefore) die();
    if (action == Action::kFail) return fails(plan_.error);
    if (action == Action::kInterrupt) return fails(EINTR);
    const bool is_half = action == Action::kShort || action == Action::kKillHalf;
    const auto result = is_half ? half() : once();
    const int error = errno;
    if (result != -1) log(result);
    if (action == Action::kKillHalf || action == Action::kKillAfter) die();
    errno = error;
    return result;
  }

  // Does something that logs, alone.
  template <class Do>
  auto alone(const Do& once) {
    const std::scoped_lock lock(mutex_);
    const Turn turn(log_);
    return once();
  }

  void log(Record record, const std::string& path, const std::string& other = "", const void* bytes = nullptr) const {
    record.path_bytes = static_cast<std::uint32_t>(path.size());
    record.other_bytes = static_cast<std::uint32_t>(other.size());
    const auto part = [](const void* from, std::size_t size) { return iovec{const_cast<void*>(from), size}; };
    const std::array parts = {part(&record, sizeof record), part(path.data(), path.size()),
                              part(other.data(), other.size()), part(bytes, record.bytes)};
    static const auto real = next<ssize_t(int, const iovec*, int)>("writev");
    if (real(log_, parts.data(), static_cast<int>(parts.size())) < 0) std::abort();
  }

 private:
  // The log's lock keeps other processes out, and the one that kills this one (Torment::run()).
  class Turn {
   public:
    explicit Turn(int log) : log_(log) { ::flock(log_, LOCK_EX); }
    ~Turn() { ::flock(log_, LOCK_UN); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const int log_;
  };

  Watch() {
    const char *const folder = std::getenv(kFolderVariable), *const log = std::getenv(kLogVariable);
    if (folder == nullptr || log == nullptr) return;
    log_ = next<int(const char*, int, ...)>("open")(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_ < 0) std::abort();
    folder_ = folder;
    int action = 0, call = 0;
    const char* const plan = std::getenv(kPlanVariable);
    if (plan == nullptr || std::sscanf(plan, "%d %d %ld %d", &action, &call, &plan_.number, &plan_.error) != 4) return;
    plan_.action = static_cast<Action>(action);
    plan_.call = static_cast<Call>(call);
  }

  static std::string folder_of(int at) {
    char link[64], path[PATH_MAX];
    if (at == AT_FDCWD) return ::getcwd(path, sizeof path) != nullptr ? path : "";
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    const ssize_t size = ::readlink(link, path, sizeof path);
    return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "";
  }
  std::string below(std::string path) const {
    const bool is_below =
        path == folder_ || (path.starts_with(folder_) && path.size() > folder_.size() && path[folder_.size()] == '/');
    return is_below ? path : "";
  }
  [[noreturn]] static void die() {
    ::kill(::getpid(), SIGKILL);
    while (true) ::pause();
  }
  static int fails(int error) {
    errno = error;
    return -1;
  }

  std::string folder_;
  int log_ = -1;
  Plan plan_;
  std::mutex mutex_;
  long made_ = 0;  // calls of the plan's kind
  bool disk_is_full_ = false;
  std::uint64_t opened_ = 0;
  std::array<std::atomic<std::uint64_t>, kMostDescriptors> files_{};
};

int open_at(int at, const char* name, int flags, mode_t mode) {
  static const auto real = next<int(int, const char*, int, ...)>("openat");
  Watch& watch = Watch::get();
  const bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE, creates = (flags & O_CREAT) != 0,
             is_folder = !is_unnamed && (flags & O_DIRECTORY) != 0;
  const bool counts = is_unnamed || creates || is_folder;
  const std::string path = counts ? watch.path_of(at, name, (flags & O_NOFOLLOW) == 0) : "";
  const auto once = [&] { return real(at, name, flags, mode); };
  if (path.empty()) {
    const int descriptor = once();
    watch.forget(descriptor);  // a number that was closed in some other way
    return descriptor;
  }
  const auto log = [&](int descriptor) {
    watch.log({.call = Call::kOpen,
               .flag = is_unnamed,
               .is_folder = is_folder,
               .file = watch.number_file(descriptor),
               .offset = (flags & O_TRUNC) != 0},
              path);
  };
  if (!is_folder) return watch.make(Call::kOpen, true, once, once, log);
  return watch.alone([&] {  // reading a folder changes nothing
    const int descriptor = once();
    if (descriptor >= 0) log(descriptor);
    return descriptor;
  });
}

// Makes a call on an open file below the folder. `offset_of` gives the record's offset by its result.
auto on_file(Call call, bool needs_space, int descriptor, const auto& once, const auto& half, const auto& offset_of,
             const void* bytes = nullptr) {
  Watch& watch = Watch::get();
  const std::uint64_t file = watch.file_of(descriptor);
  if (file == 0) return once();
  return watch.make(call, needs_space, once, half, [&](auto result) {
    watch.log({.call = call,
               .file = file,
               .offset = static_cast<std::uint64_t>(offset_of(result)),
               .bytes = call == Call::kWrite ? static_cast<std::uint64_t>(result) : 0},
              "", "", bytes);
  });
}

int resize(int descriptor, bool needs_space, const auto& once) {
  return on_file(Call::kResize, needs_space, descriptor, once, once, [&](int) {
    struct stat status {};
    ::fstat(descriptor, &status);
    return status.st_size;
  });
}

// Makes a call on one or two paths, of which one is below the folder.
int on_paths(Call call, bool needs_space, const std::string& path, const std::string& other, bool flag,
             const auto& once) {
  if (path.empty() && other.empty()) return once();
  Watch& watch = Watch::get();
  return watch.make(call, needs_space, once, once, [&](int) { watch.log({.call = call, .flag = flag}, path, other); });
}

int rename_at(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  static const auto real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  const Watch& watch = Watch::get();
  return on_paths(Call::kRename, false, watch.path_of(from_at, from), watch.path_of(to_at, to),
                  (flags & RENAME_EXCHANGE) != 0, [&] { return real(from_at, from, to_at, to, flags); });
}

int unlink_at(int at, const char* name, int flags) {
  static const auto real = next<int(int, const char*, int)>("unlinkat");
  return on_paths(Call::kUnlink, false, Watch::get().path_of(at, name), "", (flags & AT_REMOVEDIR) != 0,
                  [&] { return real(at, name, flags); });
}

int make_folder_at(int at, const char* name, mode_t mode) {
  static const auto real = next<int(int, const char*, mode_t)>("mkdirat");
  return on_paths(Call::kMakeFolder, true, Watch::get().path_of(at, name), "", false,
                  [&] { return real(at, name, mode); });
}

int symlink_at(const char* target, int at, const char* name) {
  static const auto real = next<int(const char*, int, const char*)>("symlinkat");
  const std::string path = Watch::get().path_of(at, name);
  return on_paths(Call::kSymlink, true, path, path.empty() ? "" : target, false,
                  [&] { return real(target, at, name); });
}

ssize_t write_at(int descriptor, const void* bytes, std::size_t count, off64_t offset) {
  static const auto real = next<ssize_t(int, const void*, std::size_t, off64_t)>("pwrite64");
  return on_file(
      Call::kWrite, true, descriptor, [&] { return real(descriptor, bytes, count, offset); },
      [&] { return real(descriptor, bytes, (count + 1) / 2, offset); }, [&](ssize_t) { return offset; }, bytes);
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace teratron::torture

using namespace teratron::torture;  // NOLINT: the functions below are C's
#define TERATRON_OPEN(name, parameters, at, path)  \
  extern "C" int name parameters {                 \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    const mode_t mode = mode_in(flags, arguments); \
    va_end(arguments);                             \
    return open_at(at, path, flags, mode);         \
  }
TERATRON_OPEN(open, (const char* path, int flags, ...), AT_FDCWD, path)
TERATRON_OPEN(open64, (const char* path, int flags, ...), AT_FDCWD, path)
TERATRON_OPEN(openat, (int at, const char* path, int flags, ...), at, path)
TERATRON_OPEN(openat64, (int at, const char* path, int flags, ...), at, path)

extern "C" {

int close(int descriptor) {
  static const auto real = next<int(int)>("close");
  Watch::get().forget(descriptor);
  return real(descriptor);
}

ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  static const auto real = next<ssize_t(int, const void*, std::size_t)>("write");
  return on_file(
      Call::kWrite, true, descriptor, [&] { return real(descriptor, bytes, count); },
      [&] { return real(descriptor, bytes, (count + 1) / 2); },
      [&](ssize_t written) { return ::lseek(descriptor, 0, SEEK_CUR) - written; }, bytes);
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  return write_at(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t count, off64_t offset) {
  return write_at(descriptor, bytes, count, offset);
}
int ftruncate(int descriptor, off_t size) {
  static const auto real = next<int(int, off_t)>("ftruncate");
  return resize(descriptor, false, [&] { return real(descriptor, size); });
}
int ftruncate64(int descriptor, off64_t size) { return ::ftruncate(descriptor, size); }
int fallocate(int descriptor, int mode, off_t offset, off_t count) {
  static const auto real = next<int(int, int, off_t, off_t)>("fallocate");
  return resize(descriptor, true, [&] { return real(descriptor, mode, offset, count); });
}
int fallocate64(int descriptor, int mode, off64_t offset, off64_t count) {
  return ::fallocate(descriptor, mode, offset, count);
}
int fsync(int descriptor) {
  static const auto real = next<int(int)>("fsync");
  const auto once = [&] { return real(descriptor); };
  return on_file(Call::kSync, false, descriptor, once, once, [](int) { return 0; });
}
int fdatasync(int descriptor) { return ::fsync(descriptor); }

int rename(const char* from, const char* to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char* from, int to_at, const char* to) {
  return rename_at(from_at, from, to_at, to, 0);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  return rename_at(from_at, from, to_at, to, flags);
}
int unlink(const char* path) { return unlink_at(AT_FDCWD, path, 0); }
int unlinkat(int at, const char* path, int flags) { return unlink_at(at, path, flags); }
int rmdir(const char* path) { return unlink_at(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  struct stat status {};
  return ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? ::rmdir(path) : ::unlink(path);
}
int mkdir(const char* path, mode_t mode) { return make_folder_at(AT_FDCWD, path, mode); }
int mkdirat(int at, const char* path, mode_t mode) { return make_folder_at(at, path, mode); }
int symlink(const char* target, const char* path) { return symlink_at(target, AT_FDCWD, path); }
int symlinkat(const char* target, int at, const char* path) { return symlink_at(target, at, path); }

}  // extern "C"
