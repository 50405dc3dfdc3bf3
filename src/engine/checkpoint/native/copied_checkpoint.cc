#include "checkpoint/native/copied_checkpoint.h"

#include <algorithm>

#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"

namespace teratron {

namespace fs = std::filesystem;

CopiedCheckpoint::CopiedCheckpoint(fs::path root, const ModelConfig& config, const TrainingState& state,
                                   SaveOptions options, std::span<std::byte> copy)
    : root_(std::move(root)),
      iteration_(state.iteration),
      options_(std::move(options)),
      writer_(root_, options_.run, config, state, copy) {}

fs::path CopiedCheckpoint::publish() {
  fs::path folder = writer_.publish();
  if (options_.best) link_best(root_, iteration_);
  prune();
  return folder;
}

// Checkpoints after this one are another run's future; they are not counted and not touched.
void CopiedCheckpoint::prune() const {
  std::vector<std::int64_t> earlier = iterations_in(root_);
  std::erase_if(earlier, [&](std::int64_t there) { return there >= iteration_; });
  // Later saves copy the tokenizer, a folder or a file of one, from there.
  const fs::path& tokenizer = options_.tokenizer;
  const auto is_kept = [&](std::int64_t there) {
    const std::initializer_list<fs::path> needed = {root_ / kBestLink, tokenizer, tokenizer.parent_path()};
    return std::ranges::any_of(needed, [&](const fs::path& path) {
      std::error_code error;
      return fs::equivalent(iteration_folder(root_, there), path, error);
    });
  };
  if (options_.replaces && std::erase(earlier, *options_.replaces) > 0 && !is_kept(*options_.replaces)) {
    remove_checkpoint(iteration_folder(root_, *options_.replaces));
  }
  if (options_.keep_last == 0) return;
  const auto excess = static_cast<std::int64_t>(earlier.size()) + 1 - options_.keep_last;
  for (std::int64_t i = 0; i < excess; ++i) {
    const std::int64_t there = earlier[static_cast<std::size_t>(i)];
    if (!is_kept(there)) remove_checkpoint(iteration_folder(root_, there));
  }
}

}  // namespace teratron
