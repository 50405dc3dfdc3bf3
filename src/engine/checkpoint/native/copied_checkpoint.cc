#include "checkpoint/native/copied_checkpoint.h"

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
  const auto is_kept = [&](std::int64_t there) {
    const fs::path folder = iteration_folder(root_, there);
    std::error_code error;
    // Later saves copy the tokenizer from there.
    return fs::equivalent(folder, root_ / kBestLink, error) || fs::equivalent(folder, options_.tokenizer, error);
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
