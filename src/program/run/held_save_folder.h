// The folder that a run saves to, while the run has it.
#pragma once

#include <filesystem>
#include <optional>

#include "base/files/save_lock.h"

namespace teratron {

// Makes the folder where it is missing, and locks it against other runs. A run that ends before it writes leaves no
// folder that was not there. UserError, EnvironmentError: base/files/save_lock.h.
class HeldSaveFolder {
 public:
  explicit HeldSaveFolder(const std::filesystem::path& folder);
  HeldSaveFolder(const HeldSaveFolder&) = delete;
  HeldSaveFolder& operator=(const HeldSaveFolder&) = delete;
  ~HeldSaveFolder();

 private:
  const std::filesystem::path folder_;
  bool was_there_ = false;
  std::optional<SaveLock> lock_;
};

}  // namespace teratron
