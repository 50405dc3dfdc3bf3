// Lock of a folder that a run saves to: a second run would mix its checkpoints with the first one's. Other commands
// lock their outputs in the same way (output_lock.h). The system keeps the lock (flock) and releases it however its
// process ends. The lock's file names its holder.
//
// Where the file system has no locks, the file alone is the lock. One that a killed run left must be deleted by hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace teratron {

struct SaveLockSettings {
  // Replaces flock(fd, LOCK_EX | LOCK_NB), for tests: 0, or -1 and errno.
  std::function<int(int descriptor)> lock;
  // Reports that the file system has no locks.
  std::function<void(const std::string&)> notice = [](const std::string&) {};
};

// Place that a lock protects.
struct LockedPlace {
  std::filesystem::path place, file;  // folder or file to write, and the lock's own file
  // Parts of messages: activity of the holder, and a remedy.
  std::string_view does = "saves to", another = "another --save";
};

class SaveLock {
 public:
  static constexpr std::string_view kFile = "run.lock";

  // `folder` exists. UserError: another run holds the lock; names its user, host, process and beginning, and changes
  // nothing. EnvironmentError: the folder cannot be written, or the lock's name is taken by something other than a
  // file.
  explicit SaveLock(const std::filesystem::path& folder, SaveLockSettings settings = {})
      : SaveLock(LockedPlace{.place = folder, .file = folder / kFile}, std::move(settings)) {}
  explicit SaveLock(LockedPlace place, SaveLockSettings settings = {});
  SaveLock(const SaveLock&) = delete;
  SaveLock& operator=(const SaveLock&) = delete;
  ~SaveLock();  // deletes the file

 private:
  // Holder, by the lock's file.
  struct Owner {
    std::string user, host, since;
    std::int64_t process = 0;
  };
  static Owner owner_in(const std::string& text);
  static std::string own_text();

  bool open();
  void require_file() const;
  bool is_still_there() const;
  void write_owner();
  [[noreturn]] void refuse() const;

  const LockedPlace place_;
  const std::filesystem::path& file_ = place_.file;
  const SaveLockSettings settings_;
  bool has_locks_ = true;
  bool is_ours_ = false;  // the file: no other run can hold it or wait for it
  int descriptor_ = -1;
};

}  // namespace teratron
