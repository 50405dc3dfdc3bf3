#include "run/held_save_folder.h"

#include <unistd.h>

#include "base/files/file.h"
#include "base/host/standard_streams.h"

namespace teratron {

HeldSaveFolder::HeldSaveFolder(const std::filesystem::path& folder) : folder_(folder) {
  std::error_code error;
  was_there_ = std::filesystem::exists(folder, error);
  make_folders(folder);
  lock_.emplace(folder, SaveLockSettings{.notice = [](const std::string& text) { report_to_user(text); }});
}

HeldSaveFolder::~HeldSaveFolder() {
  lock_.reset();
  if (!was_there_) ::rmdir(folder_.c_str());  // what others have put there, in it or in its place, stays
}

}  // namespace teratron
