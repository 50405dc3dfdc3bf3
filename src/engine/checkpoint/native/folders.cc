#include "checkpoint/native/folders.h"

#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "checkpoint/native/manifest.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "iter_", kPartial = ".partial", kSetAside = "set_aside";

// A whole number without sign; none if `text` is anything else.
std::optional<std::int64_t> parse_iteration(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// The iteration that a folder of this name holds. Another spelling of the number is not a name that we give.
std::optional<std::int64_t> parse_iteration_name(std::string_view name) {
  if (!name.starts_with(kFolderPrefix)) return std::nullopt;
  const auto iteration = parse_iteration(name.substr(kFolderPrefix.size()));
  return iteration && iteration_folder({}, *iteration) == name ? iteration : std::nullopt;
}

std::string tracker_text(std::int64_t iteration) {
  const std::string line = fmt::format("{}\n", iteration);
  return fmt::format("{}xxh3_64 {}\n", line, checksum_of(line));
}

// The iteration that the tracker file of `root` names.
std::int64_t read_tracker(const fs::path& root) {
  const fs::path path = root / kTrackerFile;
  const std::string text = read_file(path);
  const std::optional<std::int64_t> iteration = parse_iteration(std::string_view(text).substr(0, text.find('\n')));
  const std::vector<std::int64_t> there = iterations_in(root);
  const std::string choice = there.empty() ? "there are none beside it"
                                           : fmt::format(
                                                 "name one of the checkpoints beside it, such as '{}'; there "
                                                 "are: {}",
                                                 iteration_folder(root, there.back()).string(), fmt::join(there, ", "));
  if (!iteration || text != tracker_text(*iteration)) {
    throw_user_error("'{}' is damaged: what it says and its checksum do not agree; {}", path.string(), choice);
  }
  if (!std::ranges::binary_search(there, *iteration)) {
    const fs::path gone = iteration_folder(root, *iteration);
    std::error_code error;
    if (fs::is_symlink(gone, error)) {
      throw_user_error("'{}' is a link to '{}', which is not there; bring that back (is its disk mounted?), or {}",
                       gone.string(), fs::read_symlink(gone, error).string(), choice);
    }
    throw_user_error("'{}' names iteration {}, whose checkpoint is gone; {}", path.string(), *iteration, choice);
  }
  return *iteration;
}

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

// Removes the remains of crashed saves and deletions. Only names that Teratron gives.
void remove_leftovers(const fs::path& root) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFolderPrefix) && name.ends_with(kPartial) && entry.is_directory(error)) {
      leftovers.push_back(entry.path());
    }
  }
  for (const fs::path& leftover : leftovers) remove_folder(leftover);
}

// Exchanges two folders in one step, so that both names always lead to a whole checkpoint; false where the file system
// cannot.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

[[noreturn]] void throw_no_checkpoint(const fs::path& path) {
  const std::vector<std::int64_t> iterations = iterations_in(path);
  if (!iterations.empty()) {
    throw_user_error("'{}' has no {} (the first save did not finish?); name one of its checkpoints: '{}'",
                     path.string(), kTrackerFile, iteration_folder(path, iterations.back()).string());
  }
  std::error_code error;
  if (fs::exists(path / "config.json", error)) {
    throw_user_error(
        "'{0}' is a Hugging Face model: train --finetune {0} starts a run from its weights; for the rest convert it "
        "first: teratron convert --from hf --to teratron {0} OUT",
        path.string());
  }
  std::vector<std::string> below;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const bool is_run = fs::exists(entry->path() / kTrackerFile, error) || !iterations_in(entry->path()).empty();
    if (is_run) below.push_back(fmt::format("'{}'", entry->path().string()));
  }
  std::ranges::sort(below);
  throw_user_error("there is no checkpoint in '{}'; name {}", path.string(),
                   below.empty() ? "a folder that was given to --save, or one iter_... in it"
                                 : fmt::format("one of the runs in it: {}", fmt::join(below, ", ")));
}

}  // namespace

fs::path iteration_folder(const fs::path& root, std::int64_t iteration) {
  return root / fmt::format("{}{:07}", kFolderPrefix, iteration);
}

fs::path root_of(const fs::path& iteration_folder) {
  const fs::path root = (iteration_folder / "").parent_path().parent_path();  // whether or not it ends in a slash
  return root.empty() ? "." : root;
}

std::vector<CheckpointName> names_of(const fs::path& folder) {
  constexpr int kMostLinks = 40;  // as the system's
  std::vector<CheckpointName> names;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    const auto iteration = parse_iteration_name(path.filename().string());
    if (iteration) names.push_back({root_of(path), *iteration});
  };
  fs::path path = (folder / "").parent_path();  // without a slash at its end
  add(path);
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, error); ++links) {
    path = (path.parent_path() / fs::read_symlink(path, error) / "").parent_path();
    add(path);
  }
  const fs::path canonical = fs::canonical(folder, error);
  if (!error) add(canonical);
  return names;
}

std::vector<std::int64_t> iterations_in(const fs::path& root) {
  std::vector<std::int64_t> iterations;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const auto iteration = parse_iteration_name(entry.path().filename().string());
    if (iteration && entry.is_directory(error)) iterations.push_back(*iteration);
  }
  std::ranges::sort(iterations);
  return iterations;
}

fs::path find_checkpoint(const fs::path& path) {
  if (!is_there(path)) throw_user_error("there is no checkpoint: '{}' does not exist", path.string());
  std::error_code error;
  if (!fs::is_directory(path, error)) throw_user_error("'{}' is a file; a checkpoint is a folder", path.string());
  if (is_there(path / kTrackerFile)) return iteration_folder(path, read_tracker(path));
  // One that has lost its checkpoint.json is a damaged checkpoint; its reader says so.
  if (is_there(path / kManifestFile) || is_there(path / "optimizer.safetensors")) return path;
  throw_no_checkpoint(path);
}

void check_holds_no_checkpoint(const fs::path& folder) {
  std::error_code error;
  const bool is_one = fs::exists(folder / kManifestFile, error);
  if (!is_one && !fs::exists(folder / kTrackerFile, error) && iterations_in(folder).empty()) return;
  throw_holds_checkpoint(folder);
}

void check_takes_conversion(const fs::path& root, std::int64_t iteration) {
  std::error_code error;
  const bool unfinished = iterations_in(root) == std::vector{iteration} && !fs::exists(root / kTrackerFile, error) &&
                          !fs::exists(root / kManifestFile, error);
  if (!unfinished) check_holds_no_checkpoint(root);
}

void throw_holds_checkpoint(const fs::path& folder) {
  throw_user_error("'{}' holds a checkpoint already; name a folder of its own", folder.string());
}

void write_tracker(const fs::path& root, std::int64_t iteration) {
  write_file_atomically(root / kTrackerFile, tracker_text(iteration));
}

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
    replaced = partial_name(final_.string() + ".replaced");
    rename_folder(final_, replaced);
    rename_folder(partial_, final_);
  }
  published_ = true;
  sync_folder(final_.parent_path());  // before any file of the older one is gone
  if (!replaced.empty()) remove_folder(replaced);
}

}  // namespace teratron
