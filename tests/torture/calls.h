// Protocol of shim/shim.cc and the tests that preload it: the calls it sees, what it shall do to one of
// them, and its log of all of them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace teratron::torture {

// Calls that change a folder. kOpen is an open() that may create a file, or that opens a folder, to sync it.
enum class Call : std::uint8_t { kOpen, kWrite, kResize, kSync, kRename, kUnlink, kMakeFolder, kSymlink };
inline constexpr std::array<std::string_view, 8> kCallNames = {"open",   "write",  "resize", "sync",
                                                               "rename", "unlink", "mkdir",  "symlink"};

// Fate of the chosen call.
enum class Action : std::uint8_t {
  kNothing,
  kKillBefore,  // the process gets SIGKILL
  kKillHalf,    // a write has written half of its bytes; else as kKillBefore
  kKillAfter,
  kFail,       // with the plan's errno
  kFillDisk,   // with the plan's errno, and so do all later ones that need space
  kShort,      // a write writes half of its bytes
  kInterrupt,  // EINTR, once
};

// Environment of a program that is watched.
inline constexpr const char* kFolderVariable = "TERATRON_TORTURE_FOLDER";  // canonical; only calls below it count
inline constexpr const char* kLogVariable = "TERATRON_TORTURE_LOG";        // a file elsewhere, which is appended to
inline constexpr const char* kPlanVariable = "TERATRON_TORTURE_PLAN";      // "ACTION CALL NUMBER ERRNO", as integers

// A call that has been made and has succeeded, in the log: this, the two paths, and the bytes that were written.
struct Record {
  Call call = Call::kOpen;
  // kOpen: the file has no name (O_TMPFILE). kRename: the two are exchanged. kUnlink: a folder.
  bool flag = false;
  bool is_folder = false;  // kOpen
  std::uint32_t path_bytes = 0, other_bytes = 0;
  std::uint64_t file = 0;    // number of an open file: kOpen gives it, kWrite, kResize and kSync have it
  std::uint64_t offset = 0;  // kWrite: of the bytes; kResize: the new size; kOpen: 1 if the file was emptied
  std::uint64_t bytes = 0;   // kWrite
};

}  // namespace teratron::torture
