// One run at a time saves to a folder: a second one would mix its checkpoints with the first one's. So it is with what
// other commands write (output_lock.h). The system keeps the lock (flock) and lets go of it however its process ends.
// The lock's file says who holds it.
//
// Not every file system has locks, and some have locks that other hosts do not see. So the holder also touches the file
// every few seconds. Where the system's lock does not tell, a file that is touched has a holder, and one that is not
// was left by a run that was killed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace teratron {

struct SaveLockSettings {
  std::chrono::milliseconds touch_interval = std::chrono::seconds(3);
  std::chrono::milliseconds silence = std::chrono::seconds(10);  // after which an untouched file is left over
  // As flock(fd, LOCK_EX | LOCK_NB) does: 0, or -1 and errno.
  std::function<int(int descriptor)> lock;
  // Called with what takes time, and with what the file system cannot do.
  std::function<void(const std::string&)> notice = [](const std::string&) {};
};

// What a lock keeps others away from.
struct LockedPlace {
  std::filesystem::path place, file;  // what is written, and the lock's own file
  // For messages: what its holder does, and of what a user may choose another.
  std::string_view does = "saves to", another = "another --save";
};

class SaveLock {
 public:
  static constexpr std::string_view kFile = "run.lock";

  // `folder` exists. UserError: another run holds the lock; it says whose, on which host, and since when. Nothing is
  // changed then. EnvironmentError: the folder cannot be written, or holds something of that name that is
  // no file.
  explicit SaveLock(const std::filesystem::path& folder, SaveLockSettings settings = {})
      : SaveLock(LockedPlace{.place = folder, .file = folder / kFile}, std::move(settings)) {}
  explicit SaveLock(LockedPlace place, SaveLockSettings settings = {});
  SaveLock(const SaveLock&) = delete;
  SaveLock& operator=(const SaveLock&) = delete;
  ~SaveLock();  // deletes the file

 private:
  // Of the holder, as the file says it.
  struct Owner {
    std::string user, host, since;
    std::int64_t process = 0;
  };
  static Owner owner_in(const std::string& text);
  static std::string own_text();

  bool open();  // whether the system's lock is held, where there are such
  void require_file() const;
  bool is_still_there() const;
  bool is_touched() const;  // within `silence`
  void look_for_unlocked_owner();
  void write_owner();
  void touch();
  [[noreturn]] void refuse() const;

  const LockedPlace place_;
  const std::filesystem::path& file_ = place_.file;
  const SaveLockSettings settings_;
  bool has_locks_ = true;
  bool is_ours_ = false;  // the file: another run can neither hold it nor wait for it
  int descriptor_ = -1;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread toucher_;
};

}  // namespace teratron
