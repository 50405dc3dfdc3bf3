// teratron train: pretrains a GPT-2 or a BERT.
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/train/training_run.h"
#include "console/long_task.h"
#include "profile/pipeline_profile.h"
#include "runtime/backend_choice.h"
#include "slicing/joint_choice.h"
#include "telemetry/trace_file.h"
#include "train/config/start_reading.h"

namespace teratron {
namespace {

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

// Of micro-batches of so many sequences; empty: in the user's cache. Joint slices need several: FILE-2.json, ..
std::filesystem::path profile_file(const TrainConfig& config, std::int64_t sequences) {
  if (config.pipeline.profile.empty() || !config.pipeline.chooses_micro_batches()) return config.pipeline.profile;
  std::filesystem::path file = config.pipeline.profile;
  const std::string name = fmt::format("{}-{}{}", file.stem().string(), sequences, file.extension().string());
  return file.replace_filename(name);
}

// What slices cost, where that is asked for; of every size that micro-batches may have.
std::vector<slicing::Profile> profiles_for(const Job& job, const Rank& rank, Backend& backend) {
  const TrainConfig& config = job.config;
  const bool is_joint = config.pipeline.chooses_micro_batches();
  std::vector<slicing::Profile> profiles;
  if (!is_joint && config.pipeline.token_slices != "auto" && config.pipeline.profile.empty()) return profiles;
  ProfileRequest request = profile_request(config, job.vocab_size, rank.environment.ranks_are());
  for (const std::int64_t size :
       is_joint ? slicing::sizes_to_measure(request.sequences) : std::vector{request.sequences}) {
    request.sequences = size;
    const std::string what =
        is_joint ? fmt::format("measuring what slices of {} sequence{} cost", size, size == 1 ? "" : "s")
                 : "measuring what slices cost";
    profiles.push_back(profile_for(request, rank.mesh, backend, profile_file(config, size),
                                   rank.is_first() ? show_steps(what) : ProfileProgress{}));
  }
  return profiles;
}

void run_rank(const Job& job, const Rank& rank) {
  const TrainConfig& config = job.config;
  const std::unique_ptr<Backend> backend = make_backend(config.backend, rank);
  std::vector<slicing::Profile> profiles = profiles_for(job, rank, *backend);
  Trainer trainer(config, *backend, make_training_task(config, job.data, job.vocab_size, rank.mesh->place().tensor),
                  rank.mesh, profiles);
  if (rank.is_first()) {
    trainer.when_slices_are_chosen([&](const slicing::ChosenSlices& chosen) {
      slicing::Profile& profile = profiles.front();
      profile.chosen.push_back(chosen);
      const std::filesystem::path file = profile_file(config, profile.key.sequences);
      try {
        write_profile(profile, file.empty() ? cached_profile(profile.key) : file);
      } catch (const EnvironmentError& error) {  // the next run tries slices again
        tell_user(fmt::format("warning: {}; the run goes on", error.what()));
      }
    });
  }
  const TrainingRun run{.config = config,
                        .checkpoint = job.checkpoint,
                        .began = job.began,
                        .end_signals = job.end_signals,
                        .layout = job.layout,
                        .memory = {.vocab_size = job.vocab_size,
                                   .compute_dtype = backend->compute_dtype(),
                                   .profiles = profiles,
                                   .threads = computing_threads(*backend)},
                        .peak_flops = peak_flops_of(config, *backend, rank)};
  const TrainingResult result = run_training(run, trainer, *backend, rank);
  job.signal = result.signal;
  write_trace(config, trainer, rank);
  const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
  if (rank.is_first()) report(config.output.json, "", json_of(result, peaks).dump());
}

void run(const TrainStart& start) {
  const TrainConfig& config = start.config;
  const double began = monotonic_seconds();
  const RankLauncher launcher(config.layout.threads, config.backend.kind, config.layout.bind);
  config.documents.options(config.model.tokenizer);  // what it lacks is reported once, before there are ranks
  EndSignals end_signals(launcher.environment().process == 0);
  std::atomic<int> signal{0};
  const Job job{.config = config,
                .checkpoint = start.checkpoint ? &*start.checkpoint : nullptr,
                .began = began,
                .end_signals = end_signals,
                .signal = signal,
                .layout = launcher.description(config.layout.mesh()),
                .vocab_size = config.model.vocabulary_size(),
                .data = open_training_data(config)};
  check_corpus_tokenizer(config, job.data);
  launcher.run(config.layout.mesh(), to_toml(config), [&](const Rank& rank) { run_rank(job, rank); });
  if (signal != 0) throw EndedBySignal(signal);
}

}  // namespace

Command train_command() {
  Command command = make_command<TrainConfig>("train", "trains a GPT-2 or a BERT on a tokenised corpus", nullptr);
  command.run = [](std::span<const std::string> arguments) {
    TrainStart start = read_train_start(arguments);
    require_separate_files(fields_of(start.config));
    run(start);
  };
  return command;
}

}  // namespace teratron
