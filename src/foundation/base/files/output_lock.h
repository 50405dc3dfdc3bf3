// One command at a time writes an output: two would write into one file, and each would report the other's.
#pragma once

#include <filesystem>
#include <memory>

#include "base/files/save_lock.h"

namespace teratron {

// Held from before an output is opened until it has its name.
class OutputLock {
 public:
  static constexpr std::string_view kSuffix = ".teratron.lock";  // of the lock's file, which lies beside the output

  // `out`: a file, a folder, or the PREFIX of several files; all names of one place have the same lock. Standard
  // output, pipes and devices have none, and so has a place where no file can be made: whoever writes there says why.
  // UserError: another command holds the lock.
  explicit OutputLock(const std::filesystem::path& out);

 private:
  std::unique_ptr<SaveLock> lock_;
};

}  // namespace teratron
