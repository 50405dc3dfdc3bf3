// Changes of the folders of checkpoints (folders.h). Whatever interrupts one, no name leads to half a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace teratron {

// Makes `iteration` the current checkpoint under `root` and moves the later ones to root/set_aside, under another name
// where one of theirs is taken; a link `best` to one of them is removed. Returns where they are now, ascending.
// Whatever interrupts it, every checkpoint stays whole. EnvironmentError.
std::vector<std::filesystem::path> set_aside_later(const std::filesystem::path& root, std::int64_t iteration);

// Makes the link root/best lead to a checkpoint under `root`, in one step. EnvironmentError: the file system has no
// links.
void link_best(const std::filesystem::path& root, std::int64_t iteration);

// Deletes a checkpoint so that no half of it is ever seen. EnvironmentError.
void remove_checkpoint(const std::filesystem::path& folder);

// A folder that is filled under another name and takes its own in publish(). Without publish() nothing remains.
class FolderInProgress {
 public:
  // Creates the parent too. Deletes the remains of earlier attempts beside it. EnvironmentError.
  explicit FolderInProgress(std::filesystem::path final_path);
  FolderInProgress(const FolderInProgress&) = delete;
  FolderInProgress& operator=(const FolderInProgress&) = delete;
  ~FolderInProgress();

  const std::filesystem::path& path() const { return partial_; }  // where to write; files are synced by their writers
  void publish();                                                 // durably; a folder of that name is replaced

 private:
  std::filesystem::path final_, partial_;
  bool published_ = false;
};

}  // namespace teratron
