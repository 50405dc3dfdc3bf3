// Where checkpoints lie: the names under the folder of --save, and the tracker file that says which one is current.
// folder_changes.h changes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace teratron {

inline constexpr std::string_view kSettingsFile = "config.toml";  // of one checkpoint

// Two lines: the iteration, and the checksum of the first line.
inline constexpr std::string_view kTrackerFile = "latest_checkpointed_iteration.txt";

inline constexpr std::string_view kBestLink = "best";  // a link to the best checkpoint

inline constexpr std::string_view kFolderPrefix = "iter_";
std::filesystem::path iteration_folder(const std::filesystem::path& root, std::int64_t iteration);  // root/iter_0000100

// End of the name that a checkpoint has while another of its iteration takes its place, on file systems that cannot
// exchange two names.
inline constexpr std::string_view kReplacedEnd = ".replaced.partial";

std::filesystem::path root_of(const std::filesystem::path& iteration_folder);  // the folder that it lies in

// A name iter_... of a checkpoint's folder: its own, or of a link that leads to it.
struct CheckpointName {
  std::filesystem::path root;  // that has it
  std::int64_t iteration = 0;
};

// Names of `folder`: as given, then the target of each link in turn (`best` leads to iter_0000030, which may lead to
// another disk), and last without any links.
std::vector<CheckpointName> names_of(const std::filesystem::path& folder);

// Iterations of the checkpoints under `root`, ascending; empty if there is none, or no such folder.
std::vector<std::int64_t> iterations_in(const std::filesystem::path& root);

// `path` itself if it is one checkpoint's folder, or the current checkpoint under it. UserError, which says what is
// there instead; a tracker file that is not byte for byte as it was written is never followed. UnreadableCheckpoint: no
// permission to look.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// UserError where `folder` holds a checkpoint, or checkpoints: something else would be written there.
void check_holds_no_checkpoint(const std::filesystem::path& folder);

// UserError unless `root` may take a checkpoint after `iteration` updates that was made of another: no checkpoint is
// there, or that iteration's without a tracker, which an attempt that was killed before its last step leaves.
// CheckpointWriter::publish_as_only() compares it.
void check_takes_conversion(const std::filesystem::path& root, std::int64_t iteration);

[[noreturn]] void throw_holds_checkpoint(const std::filesystem::path& folder);

// Names `iteration` as the current checkpoint under `root`, durably. EnvironmentError.
void write_tracker(const std::filesystem::path& root, std::int64_t iteration);

}  // namespace teratron
