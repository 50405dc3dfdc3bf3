#include "cli/train/training_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/files/file.h"
#include "checkpoint/native/save_lock.h"
#include "cli/train/training_reporter.h"
#include "console/long_task.h"
#include "profile/peak_speed.h"
#include "telemetry/checkpoint_progress.h"
#include "telemetry/trace_file.h"
#include "train/save_folder.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// A run whose trace could not be written in the end is stopped before it starts.
void prepare_trace(const TrainConfig& config) {
  if (config.trace.empty() || is_standard_stream(config.trace)) return;
  if (config.trace.has_parent_path()) make_folders(config.trace.parent_path());
  write_file_atomically(config.trace, trace_file({}));
}

// Made where it is missing, and held to the end of the process's part in the run. A run that ends before it writes
// leaves no folder that was not there.
class HeldSaveFolder {
 public:
  explicit HeldSaveFolder(const fs::path& folder) : folder_(folder), was_there_(fs::exists(folder)) {
    make_folders(folder);
    lock_.emplace(folder,
                  SaveLockSettings{.notice = [](const std::string& text) { fmt::print(stderr, "{}\n", text); }});
  }
  HeldSaveFolder(const HeldSaveFolder&) = delete;
  HeldSaveFolder& operator=(const HeldSaveFolder&) = delete;
  ~HeldSaveFolder() {
    lock_.reset();
    std::error_code not_empty;
    if (!was_there_) fs::remove(folder_, not_empty);
  }

 private:
  const fs::path folder_;
  const bool was_there_;
  std::optional<SaveLock> lock_;
};

// A large checkpoint takes long to read and compare; then it is told how far that is.
std::int64_t start_told(const TrainingRun& run, Trainer& trainer, const Rank& rank) {
  std::optional<LongTask> told;
  if (rank.is_first() && run.checkpoint != nullptr) {
    std::uint64_t bytes = 0;
    for (const CheckpointFileInfo& file : run.checkpoint->files) bytes += file.bytes;
    told.emplace(fmt::format("loading '{}'", run.checkpoint->folder.string()), share_of_checksums(bytes));
  } else if (rank.is_first()) {
    told.emplace(run.config.finetune.empty() ? "drawing weights"
                                             : fmt::format("loading '{}'", run.config.finetune.string()));
  }
  return trainer.start();
}

// A run that has nothing left to do changes no file.
TrainingResult run_first_rank(const TrainingRun& run, Trainer& trainer, std::int64_t done, const RunControl& control) {
  const TrainConfig& config = run.config;
  const std::string progress = text_of_progress(config, run.checkpoint, done, trainer.has_work());
  if (!progress.empty()) fmt::print(stderr, "{}\n", progress);
  if (!trainer.has_work()) {
    TrainingObserver silent;
    return trainer.run(silent, control);
  }
  prepare_trace(config);
  prepare_tensorboard(config);
  if (const std::vector<fs::path> aside = begin_save_folder(config, done); !aside.empty()) {
    fmt::print(stderr, "{} later checkpoint{} set aside in '{}'\n", aside.size(), aside.size() > 1 ? "s" : "",
               aside.front().parent_path().string());
  }
  TrainingReporter reporter(config, trainer, done, run.peak_flops);
  return trainer.run(reporter, control);
}

}  // namespace

double peak_flops_of(const TrainConfig& config, Backend& backend, const Rank& rank) {
  return config.peak_tflops > 0 ? 1e12 * config.peak_tflops * rank.world.size() : peak_flops(backend, rank.world);
}

TrainingResult run_training(const TrainingRun& run, Trainer& trainer, Backend& backend, const Rank& rank) {
  const TrainConfig& config = run.config;
  const std::vector<RankMemory> memory = memory_of_ranks(trainer.executor().plan(), backend, rank.world);
  std::optional<HeldSaveFolder> save_folder;
  if (rank.is_first()) {
    const TrainStartText start{config, run.checkpoint, trainer, run.layout, memory};
    fmt::print(stderr, "{}\n", start.text(backend));
    if (!config.save.empty()) save_folder.emplace(config.save);
    check_save_folder(config);
  }
  require_memory(memory, backend, rank.world, rank.ranks_in_this_process(),
                 [&](const MemoryRoom& room) { return memory_advice(config, run.memory, room, run.has_flag); });
  rank.world.barrier();  // no rank takes memory before it is known that there is enough
  const std::int64_t done = start_told(run, trainer, rank);
  rank.world.barrier();  // no file is changed before it is known that every rank has started
  const RunControl control{.signal = EndSignals::came, .began = run.began};
  run.end_signals.listen();
  if (rank.is_first()) return run_first_rank(run, trainer, done, control);
  TrainingObserver silent;
  return trainer.run(silent, control);
}

}  // namespace teratron
