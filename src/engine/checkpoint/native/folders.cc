#include "checkpoint/native/folders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/files/file.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/tensor_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHuggingFaceConfig = "config.json";

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
  const std::string choice = there.empty()
                                 ? "there are none beside it"
                                 : fmt::format("name one of the checkpoints beside it, such as '{}'; there are: {}",
                                               iteration_folder(root, there.back()).string(), fmt::join(there, ", "));
  if (!iteration || text != tracker_text(*iteration)) {
    throw_user_error("'{}' is damaged: what it says and its checksum do not agree; {}", path.string(), choice);
  }
  if (!std::ranges::binary_search(there, *iteration)) {
    const fs::path gone = iteration_folder(root, *iteration);
    const fs::path replaced = gone.string() + std::string(kReplacedEnd);
    std::error_code error;
    if (fs::exists(replaced, error)) {
      throw_user_error("'{}' names iteration {}, whose run was killed as it replaced it; rename '{}' to '{}'",
                       path.string(), *iteration, replaced.string(), gone.string());
    }
    if (fs::is_symlink(gone, error)) {
      throw_user_error("'{}' is a link to '{}', which is not there; bring that back (is its disk mounted?), or {}",
                       gone.string(), fs::read_symlink(gone, error).string(), choice);
    }
    throw_user_error("'{}' names iteration {}, whose checkpoint is gone; {}", path.string(), *iteration, choice);
  }
  return *iteration;
}

[[noreturn]] void throw_no_checkpoint(const fs::path& path) {
  const std::vector<std::int64_t> iterations = iterations_in(path);
  if (!iterations.empty()) {
    throw_user_error("'{}' has no {} (the first save did not finish?); name one of its checkpoints: '{}'",
                     path.string(), kTrackerFile, iteration_folder(path, iterations.back()).string());
  }
  std::error_code error;
  if (fs::exists(path / kHuggingFaceConfig, error)) {
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

// Whether the files of one checkpoint are in `path`. A folder that has lost its checkpoint.json is one, too, where it
// has an optimizer's tensors, or weights and a name that we give: a damaged one, as its reader says.
bool is_checkpoint(const fs::path& path) {
  if (is_there(path / kManifestFile)) return true;
  std::error_code error;
  const bool is_named = !names_of(path).empty() && !fs::exists(path / kHuggingFaceConfig, error);
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (is_tensor_file(name, TensorKind::kOptimizer) || (is_named && is_tensor_file(name))) return true;
  }
  return false;
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
  if (is_checkpoint(path)) return path;
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

}  // namespace teratron
