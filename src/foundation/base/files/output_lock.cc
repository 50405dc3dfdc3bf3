#include "base/files/output_lock.h"

#include <string>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/standard_streams.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Lock file of `out`, the same for all names of a place; empty where there is nothing to lock.
fs::path lock_file_of(const fs::path& out) {
  const fs::path target = AtomicFile::target_of(out);
  std::error_code error;
  const fs::path real = fs::weakly_canonical(target.has_filename() ? target : target.parent_path(), error);
  return error || real.empty() ? fs::path() : fs::path(real.string() + std::string(OutputLock::kSuffix));
}

}  // namespace

OutputLock::OutputLock(const fs::path& out) {
  const fs::path file = lock_file_of(out);
  if (file.empty()) return;
  try {
    lock_ = std::make_unique<SaveLock>(
        LockedPlace{.place = out, .file = file, .does = "writes", .another = "another place"},
        SaveLockSettings{.notice = [](const std::string& text) { report_to_user(text); }});
  } catch (const EnvironmentError&) {
    // The output cannot be written either. Writing it throws a better message.
  }
}

}  // namespace teratron
