#include "base/files/save_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/open_file_name.h"
#include "base/files/write_all.h"
#include "base/host/host_name.h"
#include "base/json_string.h"

namespace teratron {
namespace {

std::string user_of_this_process() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? entry.pw_name : fmt::format("user {}", ::geteuid());
}

// Text of a lock's file; empty where there is none. It is opened anew, so that a network file system asks its server.
std::string read_lock_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return "";
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  ::close(descriptor);
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
}

}  // namespace

SaveLock::SaveLock(LockedPlace place, SaveLockSettings settings)
    : place_(std::move(place)), settings_(std::move(settings)) {
  try {
    while (!open()) {
    }
    is_ours_ = true;
    write_owner();
  } catch (const UserError&) {  // the file is another run's
    ::close(descriptor_);
    throw;
  } catch (...) {
    // The file may be empty or half written. It is deleted before the lock is released, as at an orderly end.
    if (is_ours_ && is_still_there()) ::unlink(file_.c_str());
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

SaveLock::~SaveLock() {
  if (is_still_there()) ::unlink(file_.c_str());  // before the lock is released: no other process can hold it yet
  ::close(descriptor_);
}

// Opens and locks the file. Returns false where the file was deleted meanwhile: try again.
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
  has_locks_ = result == 0 || errno == EWOULDBLOCK;
  if (result != 0 && has_locks_) refuse();
  if (!is_still_there()) return false;
  if (!has_locks_) {
    const std::string text = read_lock_file(file_);
    const Owner owner = owner_in(text);
    const bool has_ended = owner.host == host_name() && owner.process > 0 &&
                           ::kill(static_cast<pid_t>(owner.process), 0) != 0 && errno == ESRCH;
    if (!text.empty() && !has_ended) refuse();
  }
  if (!is_of_another_user) return true;
  if (::unlink(file_.c_str()) != 0 && errno != ENOENT) {
    throw_environment_error("cannot delete '{}', which {} left there: {}; delete it or choose {}", file_.string(),
                            owner_in(read_lock_file(file_)).user, std::strerror(errno), place_.another);
  }
  return false;
}

// Refuses a link, folder, pipe or device in the place of the file: writing must not follow a link.
void SaveLock::require_file() const {
  struct stat status {};
  if (::lstat(file_.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  const char* const kind = S_ISLNK(status.st_mode)    ? "a link"
                           : S_ISDIR(status.st_mode)  ? "a folder"
                           : S_ISFIFO(status.st_mode) ? "a pipe"
                                                      : "a device or socket";
  throw_environment_error("'{}' is {}, where a run puts a file to hold the folder; delete it or choose {}",
                          file_.string(), kind, place_.another);
}

bool SaveLock::is_still_there() const { return names_open_file(file_, descriptor_, LastLink::kRefused); }

void SaveLock::write_owner() {
  const std::string text = own_text();
  if (const int error = write_all(descriptor_, text); error != 0) {
    throw_environment_error("cannot write '{}': {}; {} or choose {}", file_.string(), std::strerror(error),
                            remedy_of_write_error(error), place_.another);
  }
  if (has_locks_) return;
  settings_.notice(fmt::format("the file system of '{}' has no locks; only '{}' keeps a second run from writing there",
                               place_.place.string(), file_.filename().string()));
  // Two runs may begin at once; the later writer goes on.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (read_lock_file(file_) != text) refuse();
}

void SaveLock::refuse() const {
  const Owner owner = owner_in(read_lock_file(file_));
  const std::string who = owner.host.empty() ? "another run"
                                             : fmt::format("a run of {} on {} (process {}, begun {})", owner.user,
                                                           owner.host, owner.process, owner.since);
  const std::string left =
      has_locks_ ? "" : fmt::format("; if it has ended, delete '{}', which it could not", file_.string());
  throw_user_error("{} {} '{}' already; wait for its end, end it, or choose {}{}", who, place_.does,
                   place_.place.string(), place_.another, left);
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
                                       {"host", host_name()},
                                       {"process", ::getpid()},
                                       {"since", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", now)}};
  return json_text(json) + "\n";
}

}  // namespace teratron
