// teratron train: pretrains a GPT-2 or a BERT.
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/monotonic_clock.h"
#include "base/threads.h"
#include "checkpoint/save_lock.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/train_start.h"
#include "cli/training_reporter.h"
#include "console/readable.h"
#include "profile/peak_speed.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "runtime/end_signals.h"
#include "runtime/memory_table.h"
#include "runtime/ranks.h"
#include "telemetry/checkpoint_progress.h"
#include "telemetry/trace_file.h"
#include "train/memory_plan.h"
#include "train/save_folder.h"
#include "train/start_reading.h"
#include "train/trainer.h"

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

std::string_view name_of_end(const TrainingResult& result) {
  switch (result.end) {
    case RunEnd::kSignal: return name_of_signal(result.signal);
    case RunEnd::kExitDuration: return "exit-duration-in-mins";
    case RunEnd::kEarlyStop: return "early-stop";
    case RunEnd::kComplete: break;
  }
  return "train-iters";
}

nlohmann::ordered_json json_of(const TrainingResult& result, const std::vector<std::int64_t>& peaks) {
  const auto number = [](std::optional<double> value) { return value ? nlohmann::ordered_json(*value) : nullptr; };
  return {{"iterations", result.iterations},
          {"ended_by", name_of_end(result)},
          {"consumed_samples", result.consumed_samples},
          {"final_loss", number(result.final_loss)},
          {"validation_loss", number(result.validation_loss)},
          {"tokens_per_second", std::round(10 * result.tokens_per_second) / 10},
          {"peak_memory_bytes", peaks}};
}

struct Job {
  const TrainConfig& config;
  const CheckpointInfo* checkpoint;  // that it goes on from; nullptr: none
  double began;                      // on the monotonic clock
  EndSignals& end_signals;
  std::atomic<int>& signal;  // that ended the run; 0: none
  std::string layout;        // for people
  std::int64_t vocab_size;
  TrainingData data;
};

// A large checkpoint takes long to read and compare; then it is told how far that is.
std::int64_t start_told(const Job& job, Trainer& trainer, const Rank& rank) {
  std::optional<LongTask> told;
  if (rank.is_first() && job.checkpoint != nullptr) {
    std::uint64_t bytes = 0;
    for (const CheckpointFileInfo& file : job.checkpoint->files) bytes += file.bytes;
    told.emplace(fmt::format("loading '{}'", job.checkpoint->folder.string()), share_of_checksums(bytes));
  } else if (rank.is_first()) {
    told.emplace(job.config.finetune.empty() ? "drawing weights"
                                             : fmt::format("loading '{}'", job.config.finetune.string()));
  }
  return trainer.start();
}

// A run that has nothing left to do changes no file.
// `peak_flops`: of all ranks.
TrainingResult run_first_rank(const Job& job, Trainer& trainer, std::int64_t done, double peak_flops,
                              const RunControl& control) {
  const TrainConfig& config = job.config;
  const std::string progress = text_of_progress(config, job.checkpoint, done, trainer.has_work());
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
  TrainingReporter reporter(config, trainer, done, peak_flops);
  return trainer.run(reporter, control);
}

void run_rank(const Job& job, const Rank& rank) {
  const TrainConfig& config = job.config;
  const std::unique_ptr<Backend> backend = make_backend(config, rank);
  const double peak =
      config.peak_tflops > 0 ? 1e12 * config.peak_tflops * rank.world.size() : peak_flops(*backend, rank.world);
  std::optional<slicing::Profile> profile;
  if (config.token_slices == "auto" || !config.profile.empty()) {
    profile =
        profile_for(profile_request(config, job.vocab_size, rank.environment.ranks_are()), rank.mesh, *backend,
                    config.profile, rank.is_first() ? show_steps("measuring what slices cost") : ProfileProgress{});
  }
  Trainer trainer(config, *backend, make_training_task(config, job.data, job.vocab_size, rank.mesh->place().tensor),
                  rank.mesh, profile ? &*profile : nullptr);
  const std::vector<RankMemory> memory =
      memory_of_ranks(trainer.executor().memory(), *backend, rank.mesh->pipeline->rank(), rank.world);
  std::optional<HeldSaveFolder> save_folder;
  if (rank.is_first()) {
    const TrainStartText start{config, job.checkpoint, trainer, job.layout, memory};
    fmt::print(stderr, "{}\n", start.text(*backend));
    if (!config.save.empty()) save_folder.emplace(config.save);
    check_save_folder(config);
  }
  require_memory(memory, *backend, rank.world, rank.ranks_in_this_process(), [&](const MemoryRoom& room) {
    return memory_advice(config, {job.vocab_size, backend->compute_dtype(), profile ? &*profile : nullptr}, room);
  });
  rank.world.barrier();  // no rank takes memory before it is known that there is enough
  const std::int64_t done = start_told(job, trainer, rank);
  rank.world.barrier();  // no file is changed before it is known that every rank has started
  const RunControl control{.signal = EndSignals::came, .began = job.began};
  job.end_signals.listen();
  const TrainingResult result = rank.is_first() ? run_first_rank(job, trainer, done, peak, control) : [&] {
    TrainingObserver silent;
    return trainer.run(silent, control);
  }();
  job.signal = result.signal;
  if (trainer.trace()) write_trace(config.trace, *trainer.trace(), *rank.mesh, rank.world);
  const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
  if (rank.is_first()) report(config.json, "", json_of(result, peaks).dump());
}

void run(const TrainStart& start) {
  const TrainConfig& config = start.config;
  const double began = monotonic_seconds();
  const RankLauncher launcher(config.threads, config.backend);
  config.documents(config.tokenizer);  // what it lacks is told once, before there are ranks
  EndSignals end_signals(launcher.environment().process == 0);
  std::atomic<int> signal{0};
  const Job job{.config = config,
                .checkpoint = start.checkpoint ? &*start.checkpoint : nullptr,
                .began = began,
                .end_signals = end_signals,
                .signal = signal,
                .layout = launcher.description(config.mesh()),
                .vocab_size = config.vocabulary_size(),
                .data = open_training_data(config)};
  check_corpus_tokenizer(config, job.data);
  launcher.run(config.mesh(), to_toml(config), [&](const Rank& rank) { run_rank(job, rank); });
  if (signal != 0) throw EndedBySignal(signal);
}

}  // namespace

Command train_command() {
  Command command = make_command<TrainConfig>("train", "trains a GPT-2 or a BERT on a tokenised corpus", nullptr);
  command.run = [](std::span<const std::string> arguments) { run(read_train_start(arguments)); };
  return command;
}

}  // namespace teratron
