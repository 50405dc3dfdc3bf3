// Lock of an output: one command at a time writes it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/files/save_lock.h"

namespace teratron {

// Held from before an output is opened until it has its final name.
class OutputLock {
 public:
  static constexpr std::string_view kSuffix = ".teratron.lock";  // name of the lock's file, beside the output

  // `out`: a file, a folder, or the PREFIX of several files. All names of one place have the same lock. Standard
  // output, pipes and devices have none, nor have folders in which no file can be made: writing there fails with a
  // message of its own. UserError: another command holds the lock.
  explicit OutputLock(const std::filesystem::path& out);

 private:
  std::unique_ptr<SaveLock> lock_;
};

}  // namespace teratron
