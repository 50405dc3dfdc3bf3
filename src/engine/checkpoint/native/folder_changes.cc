#include "checkpoint/native/folder_changes.h"

#include <fcntl.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/native/folders.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial", kSetAside = "set_aside";

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    throw_environment_error("cannot rename '{}' to '{}': {}", from.string(), to.string(), error.message());
  }
}

// Moves a link, not its target.
void move_checkpoint(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::is_symlink(from, error)) return rename_folder(from, to);
  const fs::path target = fs::canonical(from, error);
  if (!error) fs::create_directory_symlink(target, to, error);
  if (!error) fs::remove(from, error);
  if (error) throw_environment_error("cannot move '{}' to '{}': {}", from.string(), to.string(), error.message());
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw_environment_error("cannot delete '{}': {}", folder.string(), error.message());
}

fs::path partial_name(const fs::path& folder) { return folder.string() + std::string(kPartial); }

// Removes the remains of crashed saves and deletions. Only names that Teratron gives. A checkpoint that was to be
// replaced gets its name back where the new one has not taken it.
void remove_leftovers(const fs::path& root) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFolderPrefix) && name.ends_with(kPartial) && entry.is_directory(error)) {
      leftovers.push_back(entry.path());
    }
  }
  for (const fs::path& leftover : leftovers) {
    std::string name = leftover.string();
    if (name.ends_with(kReplacedEnd)) {
      name.resize(name.size() - kReplacedEnd.size());
      if (!fs::exists(name, error)) {
        rename_folder(leftover, name);
        continue;
      }
    }
    remove_folder(leftover);
  }
}

// Exchanges two folders in one step, so that both names always lead to a whole checkpoint; false where the file system
// cannot.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

std::vector<fs::path> set_aside_later(const fs::path& root, std::int64_t iteration) {
  std::vector<std::int64_t> later = iterations_in(root);
  std::erase_if(later, [&](std::int64_t there) { return there <= iteration; });
  write_tracker(root, iteration);  // first: it must never name a checkpoint that has gone
  std::vector<fs::path> moved;
  if (later.empty()) return moved;
  const fs::path aside = root / kSetAside, best = root / kBestLink;
  make_folders(aside);
  std::error_code error;
  for (const std::int64_t there : later) {
    const fs::path from = iteration_folder(root, there), name = aside / from.filename();
    if (fs::equivalent(from, best, error)) fs::remove(best, error);
    fs::path to = name;
    for (int copy = 2; fs::exists(fs::symlink_status(to, error)); ++copy) {
      to = fmt::format("{}.{}", name.string(), copy);
    }
    move_checkpoint(from, to);
    moved.push_back(to);
  }
  sync_folder(aside);
  sync_folder(root);
  return moved;
}

void link_best(const fs::path& root, std::int64_t iteration) {
  const fs::path link = root / kBestLink, partial = partial_name(link);
  std::error_code error;
  fs::remove(partial, error);
  fs::create_symlink(iteration_folder({}, iteration), partial, error);
  if (!error) fs::rename(partial, link, error);
  if (error) throw_environment_error("cannot make the link '{}': {}", link.string(), error.message());
  sync_folder(root);
}

void remove_checkpoint(const fs::path& folder) {
  const fs::path partial = partial_name(folder);
  remove_folder(partial);
  rename_folder(folder, partial);
  sync_folder(root_of(folder));  // before any of its files is gone, else a power failure brings its name back
  remove_folder(partial);
}

FolderInProgress::FolderInProgress(fs::path final_path)
    : final_(std::move(final_path)), partial_(partial_name(final_)) {
  make_folders(final_.parent_path());
  remove_leftovers(final_.parent_path());
  make_folders(partial_);
}

FolderInProgress::~FolderInProgress() {
  std::error_code ignored;  // the error that brought us here is the one to report
  if (!published_) fs::remove_all(partial_, ignored);
}

void FolderInProgress::publish() {
  sync_folder(partial_);
  fs::path replaced;  // where an older folder of this name is now
  std::error_code error;
  if (!fs::exists(final_, error)) {
    rename_folder(partial_, final_);
  } else if (exchange(partial_, final_)) {
    replaced = partial_;
  } else {
    // Between the two names there is none, for a moment: the best that such a file system allows.
    replaced = final_.string() + std::string(kReplacedEnd);
    rename_folder(final_, replaced);
    try {
      rename_folder(partial_, final_);
    } catch (...) {
      fs::rename(replaced, final_, error);  // the first error is the one to report
      throw;
    }
  }
  published_ = true;
  sync_folder(final_.parent_path());  // before any file of the older one is gone
  if (!replaced.empty()) remove_folder(replaced);
}

}  // namespace teratron
