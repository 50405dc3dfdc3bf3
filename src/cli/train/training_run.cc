#include "cli/train/training_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/save_lock.h"
#include "base/host/standard_streams.h"
#include "cli/train/training_reporter.h"
#include "console/long_task.h"
#include "profile/peak_speed.h"
#include "telemetry/checkpoint_progress.h"
#include "telemetry/trace_file.h"
#include "train/save_folder.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// A run whose trace could not be written in the end is stopped before it starts, but for a full disk, which passes.
void prepare_trace(const TrainConfig& config) {
  if (config.output.trace.empty() || is_standard_stream(config.output.trace)) return;
  if (config.output.trace.has_parent_path()) make_folders(config.output.trace.parent_path());
  require_replaceable(config.output.trace, "trace of teratron", kTraceBeginning);
  try {
    write_file_atomically(config.output.trace, trace_file({}));
  } catch (const NoSpaceError& error) {
    tell_user(fmt::format("warning: {}; the run goes on, and there may be no trace", error.what()));
  }
}

// Made where it is missing, and held to the end of the process's part in the run. A run that ends before it writes
// leaves no folder that was not there.
class HeldSaveFolder {
 public:
  explicit HeldSaveFolder(const fs::path& folder) : folder_(folder) {
    std::error_code error;
    was_there_ = fs::exists(folder, error);
    make_folders(folder);
    lock_.emplace(folder, SaveLockSettings{.notice = [](const std::string& text) { tell_user(text); }});
  }
  HeldSaveFolder(const HeldSaveFolder&) = delete;
  HeldSaveFolder& operator=(const HeldSaveFolder&) = delete;
  ~HeldSaveFolder() {
    lock_.reset();
    if (!was_there_) ::rmdir(folder_.c_str());  // what others have put there, in it or in its place, stays
  }

 private:
  const fs::path folder_;
  bool was_there_ = false;
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
    told.emplace(run.config.output.finetune.empty() ? "drawing weights"
                                             : fmt::format("loading '{}'", run.config.output.finetune.string()));
  }
  return trainer.start();
}

// A run that has nothing left to do changes no file.
TrainingResult run_first_rank(const TrainingRun& run, Trainer& trainer, std::int64_t done, const RunControl& control) {
  const TrainConfig& config = run.config;
  const std::string progress = text_of_progress(config, run.checkpoint, done, trainer.has_work());
  if (!progress.empty()) tell_user(progress);
  if (!trainer.has_work()) {
    TrainingObserver silent;
    return trainer.run(silent, control);
  }
  prepare_trace(config);
  prepare_tensorboard(config);
  if (const std::vector<fs::path> aside = begin_save_folder(config, done); !aside.empty()) {
    tell_user(fmt::format("{} later checkpoint{} set aside in '{}'", aside.size(), aside.size() > 1 ? "s" : "",
                          aside.front().parent_path().string()));
  }
  TrainingReporter reporter(config, trainer, done, run.peak_flops);
  return trainer.run(reporter, control);
}

}  // namespace

double peak_flops_of(const TrainConfig& config, Backend& backend, const Rank& rank) {
  std::optional<LongTask> told;
  if (rank.is_first()) told.emplace("measuring how fast the ranks compute");
  return config.output.peak_tflops > 0 ? 1e12 * config.output.peak_tflops * rank.world.size() : peak_flops(backend, rank.world);
}

void write_trace(const TrainConfig& config, const Trainer& trainer, const Rank& rank) {
  if (!trainer.trace()) return;
  const std::string text = gather_trace(*trainer.trace(), *rank.mesh, rank.world);
  if (!rank.is_first()) return;
  try {
    write_file_atomically(config.output.trace, text);
  } catch (const EnvironmentError& error) {
    tell_user(fmt::format("warning: {}; there is no trace of this run", error.what()));
  }
}

TrainingResult run_training(const TrainingRun& run, Trainer& trainer, Backend& backend, const Rank& rank) {
  const TrainConfig& config = run.config;
  const std::vector<RankMemory> memory = memory_of_ranks(trainer.executor().plan(), backend, rank.world);
  std::optional<HeldSaveFolder> save_folder;
  if (rank.is_first()) {
    const TrainStartText start{config, run.checkpoint, trainer, run.layout, memory};
    tell_user(start.text(backend));
    if (!config.output.save.empty()) save_folder.emplace(config.output.save);
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
