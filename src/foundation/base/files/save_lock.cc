#include "base/files/save_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

std::string host_of_this_process() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

std::string user_of_this_process() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? entry.pw_name : fmt::format("user {}", ::geteuid());
}

// Of a short file, as another host may have written it just now: opening it anew asks the server. Empty: nothing there.
struct LockFile {
  std::string text;
  timespec touched{};
};

LockFile read_lock_file(const std::filesystem::path& path) {
  LockFile file;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return file;
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got > 0) file.text.assign(buffer.data(), static_cast<std::size_t>(got));
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) file.touched = status.st_mtim;
  ::close(descriptor);
  return file;
}

bool is_same(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

SaveLock::SaveLock(LockedPlace place, SaveLockSettings settings)
    : place_(std::move(place)), settings_(std::move(settings)) {
  try {
    while (!open()) {
    }
    is_ours_ = has_locks_;
    look_for_unlocked_owner();
    is_ours_ = true;
    write_owner();
    toucher_ = std::thread([this] { touch(); });
  } catch (const UserError&) {  // it is another's
    ::close(descriptor_);
    throw;
  } catch (...) {
    // The file may be empty or half written; it is deleted before the lock goes, as at an orderly end.
    if (is_ours_ && is_still_there()) ::unlink(file_.c_str());
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

SaveLock::~SaveLock() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  toucher_.join();
  if (is_still_there()) ::unlink(file_.c_str());  // before the lock goes: no other process can hold it yet
  ::close(descriptor_);
}

// False where the file was deleted between our two looks at it: try again.
bool SaveLock::open() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  require_file();
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | kFlags, 0644);
  const bool is_of_another_user = descriptor_ < 0 && errno == EACCES;
  if (is_of_another_user) {
    descriptor_ = ::open(file_.c_str(), O_RDONLY | kFlags);
    if (descriptor_ < 0) errno = EACCES;  // no file of that name: the folder may not be written
  }
  if (descriptor_ < 0) {
    throw_environment_error("cannot write '{}': {}; {} or choose {}", file_.string(), std::strerror(errno),
                            remedy_of_write_error(errno), place_.another);
  }
  int result = 0;
  do {
    result = settings_.lock ? settings_.lock(descriptor_) : ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) refuse();
  has_locks_ = result == 0;
  if (!is_still_there()) return false;
  if (!is_of_another_user) return true;
  if (!has_locks_ && is_touched()) refuse();
  if (::unlink(file_.c_str()) != 0 && errno != ENOENT) {
    throw_environment_error("cannot delete '{}', which {} left there: {}; delete it or choose {}", file_.string(),
                            owner_in(read_lock_file(file_).text).user, std::strerror(errno), place_.another);
  }
  return false;
}

// Anything else of this name is not ours to write to: least of all what a link leads to.
void SaveLock::require_file() const {
  struct stat status {};
  if (::lstat(file_.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  const char* const kind = S_ISLNK(status.st_mode)    ? "a link"
                           : S_ISDIR(status.st_mode)  ? "a folder"
                           : S_ISFIFO(status.st_mode) ? "a pipe"
                                                      : "a device or socket";
  throw_environment_error("'{}' is {}, where a run puts a file to hold the folder; delete it or choose another --save",
                          file_.string(), kind);
}

bool SaveLock::is_still_there() const {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor_, &opened) == 0 && ::lstat(file_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

bool SaveLock::is_touched() const {
  const timespec before = read_lock_file(file_).touched;
  const auto end = std::chrono::steady_clock::now() + settings_.silence;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min(settings_.touch_interval, settings_.silence) / 4);
    if (!is_same(read_lock_file(file_).touched, before)) return true;
  }
  return false;
}

// What an orderly end would have deleted is there.
void SaveLock::look_for_unlocked_owner() {
  const std::string text = read_lock_file(file_).text;
  if (text.empty()) return;
  const Owner owner = owner_in(text);
  if (has_locks_ && owner.host == host_of_this_process()) return;  // the lock was free, so its holder is gone
  settings_.notice(fmt::format("'{}' was left by a run on {}: looking whether it still runs", file_.string(),
                               owner.host.empty() ? "another host" : owner.host));
  if (is_touched()) refuse();
}

void SaveLock::write_owner() {
  const std::string text = own_text();
  const auto size = static_cast<ssize_t>(text.size());
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) != size ||
      (::fsync(descriptor_) != 0 && errno != EINVAL)) {
    throw_environment_error("cannot write '{}': {}; {} or choose {}", file_.string(), std::strerror(errno),
                            remedy_of_write_error(errno), place_.another);
  }
  if (has_locks_) return;
  settings_.notice(fmt::format("the file system of '{}' has no locks; only '{}' keeps a second run from writing there",
                               place_.place.string(), file_.filename().string()));
  // Of two runs that began at once, the one whose text stands goes on.
  std::this_thread::sleep_for(settings_.touch_interval / 4);
  if (read_lock_file(file_).text != text) refuse();
}

void SaveLock::touch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, settings_.touch_interval, [this] { return ends_; })) {
    ::futimens(descriptor_, nullptr);
  }
}

void SaveLock::refuse() const {
  const Owner owner = owner_in(read_lock_file(file_).text);
  const std::string who = owner.host.empty() ? "another run"
                                             : fmt::format("a run of {} on {} (process {}, begun {})", owner.user,
                                                           owner.host, owner.process, owner.since);
  throw_user_error("{} {} '{}' already; wait for its end, end it, or choose {}", who, place_.does,
                   place_.place.string(), place_.another);
}

SaveLock::Owner SaveLock::owner_in(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
  };
  Owner owner{.user = text_of("user"), .host = text_of("host"), .since = text_of("since")};
  if (!owner.host.empty() && json.contains("process") && json["process"].is_number_integer()) {
    owner.process = json["process"];
  }
  return owner;
}

std::string SaveLock::own_text() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const nlohmann::ordered_json json = {{"user", user_of_this_process()},
                                       {"host", host_of_this_process()},
                                       {"process", ::getpid()},
                                       {"since", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", now)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace teratron
