#include "train/save_folder.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool goes_on_in_its_folder(const TrainConfig& config) {
  if (config.output.load.empty()) return false;
  return std::ranges::any_of(names_of(find_checkpoint(config.output.checkpoint())), [&](const CheckpointName& name) {
    std::error_code error;
    return fs::equivalent(config.output.save, name.root, error);
  });
}

}  // namespace

void check_save_folder(const TrainConfig& config) {
  if (config.output.save.empty()) return;
  std::error_code ignored;
  if (!fs::exists(config.output.save / kTrackerFile, ignored) || goes_on_in_its_folder(config)) return;
  throw_user_error("'{0}' already holds a run; go on with it by --load {0}, or --save elsewhere",
                   config.output.save.string());
}

std::vector<fs::path> begin_save_folder(const TrainConfig& config, std::int64_t iteration) {
  if (config.output.save.empty()) return {};
  make_folders(config.output.save);
  std::vector<fs::path> aside;
  if (goes_on_in_its_folder(config)) aside = set_aside_later(config.output.save, iteration);
  write_file_atomically(config.output.save / kSettingsFile, saved_settings(config));
  return aside;
}

}  // namespace teratron
