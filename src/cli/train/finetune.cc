// teratron finetune: trains a BERT for MNLI, QQP, SQuAD or RACE, and says how well it does there.
#include <fmt/format.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/host/monotonic_clock.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/folders.h"
#include "cli/commands.h"
#include "cli/eval/task_results.h"
#include "cli/report.h"
#include "cli/train/training_run.h"
#include "console/text_table.h"
#include "finetune/finetune_task.h"
#include "finetune/going_on.h"
#include "finetune/outputs.h"
#include "runtime/backend_choice.h"
#include "runtime/weight_use.h"

namespace teratron {
namespace {

// What all ranks of a process read.
struct FinetuneJob {
  const FinetuneConfig& config;
  double began;  // on the monotonic clock
  EndSignals& end_signals;
  std::atomic<int>& signal;                             // that ended the run; 0: none
  std::string layout;                                   // for people
  std::unique_ptr<TaskSet> training, validation, test;  // test: null where there is none
};

// A run's best checkpoint, or an ensemble.
struct FinetuneResult {
  std::int64_t seed = 0, iteration = 0;
  TaskOutputValues validation_outputs, test_outputs;
  std::vector<TaskScore> validation, test;  // test: none where its labels are not known
};

void add_scores(FinetuneResult& result, const FinetuneJob& job) {
  result.validation = job.validation->scores(result.validation_outputs);
  if (job.test && job.test->has_labels()) result.test = job.test->scores(result.test_outputs);
}

void write_predictions(const FinetuneResult& result, const FinetuneJob& job, const std::filesystem::path& folder) {
  const std::string_view extension = predictions_extension(job.config.task);
  job.validation->write_predictions(folder / fmt::format("predictions-valid{}", extension), result.validation_outputs);
  if (job.test) job.test->write_predictions(folder / fmt::format("predictions-test{}", extension), result.test_outputs);
}

// Of the checkpoint with the highest score, which takes the place of the last one in `trainer`.
FinetuneResult result_of(const FinetuneJob& job, const TrainConfig& run, Trainer& trainer, const Rank& rank) {
  const std::filesystem::path best = run.save / kBestLink;
  const CheckpointInfo checkpoint = read_checkpoint_info(best);
  Executor& executor = trainer.executor();
  load_weights(best, trainer.task().config, executor.all_parameters(), executor.backend(), rank.is_first());
  const auto& model = static_cast<const Bert&>(*trainer.task().model);
  FinetuneResult result{.seed = run.seed, .iteration = checkpoint.state.iteration};
  result.validation_outputs = outputs_of(executor, model, job.validation->examples());
  if (job.test) result.test_outputs = outputs_of(executor, model, job.test->examples());
  if (!rank.is_first()) return {};
  add_scores(result, job);
  write_predictions(result, job, run.save);
  return result;
}

FinetuneResult ensemble_of(const std::vector<FinetuneResult>& runs, const FinetuneJob& job) {
  std::vector<TaskOutputValues> validation, test;
  for (const FinetuneResult& run : runs) {
    validation.push_back(run.validation_outputs);
    test.push_back(run.test_outputs);
  }
  FinetuneResult result{.validation_outputs = mean_of(validation)};
  if (job.test) result.test_outputs = mean_of(test);
  add_scores(result, job);
  write_predictions(result, job, job.config.save);
  return result;
}

nlohmann::ordered_json json_of(const FinetuneResult& result) {
  nlohmann::ordered_json json = {{"valid", json_of(result.validation)}};
  json["test"] = result.test.empty() ? nlohmann::ordered_json() : json_of(result.test);
  return json;
}

std::string text_of(std::string_view name, const FinetuneResult& result) {
  std::string text = fmt::format("{}: {}", name, text_of(result.validation));
  if (!result.test.empty()) text += fmt::format("; test: {}", text_of(result.test));
  return text + "\n";
}

void report_results(const FinetuneJob& job, const std::vector<FinetuneResult>& runs,
                    const std::vector<std::int64_t>& peaks) {
  const FinetuneConfig& config = job.config;
  nlohmann::ordered_json json = {{"task", name_of(config.task)}, {"runs", nlohmann::ordered_json::array()}};
  std::string text;
  std::vector<double> scores;
  for (const FinetuneResult& run : runs) {
    nlohmann::ordered_json one = {{"seed", run.seed}, {"iteration", run.iteration}};
    one.update(json_of(run));
    json["runs"].push_back(one);
    text += text_of(fmt::format("seed {}, after iteration {}", run.seed, run.iteration), run);
    scores.push_back(run.validation.front().value);
  }
  if (runs.size() > 1) {
    const FinetuneResult& median = runs[median_of(scores)];
    json["median"] = {{"seed", median.seed}};
    json["median"].update(json_of(median));
    text += text_of(fmt::format("median, seed {}", median.seed), median);
  }
  if (config.ensemble) {
    const FinetuneResult ensemble = ensemble_of(runs, job);
    json["ensemble"] = json_of(ensemble);
    text += text_of(fmt::format("ensemble of {}", runs.size()), ensemble);
  }
  json["peak_memory_bytes"] = peaks;
  report(config.json, text, json.dump());
}

void run_rank(const FinetuneJob& job, const Rank& rank) {
  const FinetuneConfig& config = job.config;
  const std::unique_ptr<Backend> backend = make_backend(config, rank);
  FinetuneConfig own = config;
  FieldList fields = fields_of(own);
  std::vector<FinetuneResult> results;
  for (std::int64_t index = 0; index < config.seeds; ++index) {
    const TrainConfig run = train_config(config, job.training->examples(), index);
    std::optional<CheckpointInfo> checkpoint;
    if (!run.load.empty()) checkpoint = read_checkpoint_info(run.load);
    Trainer trainer(run, *backend,
                    make_finetune_task(run, config.task, *job.training, *job.validation, rank.mesh->place().tensor),
                    rank.mesh);
    const TrainingRun told{.config = run,
                           .checkpoint = checkpoint ? &*checkpoint : nullptr,
                           .began = job.began,
                           .end_signals = job.end_signals,
                           .layout = job.layout,
                           .memory = {.vocab_size = run.model.vocab_size,
                                      .compute_dtype = backend->compute_dtype(),
                                      .threads = computing_threads(*backend)},
                           .peak_flops = peak_flops_of(run, *backend, rank),
                           .has_flag = [&fields](const std::string& flag) { return fields.find(flag) != nullptr; }};
    const TrainingResult result = run_training(told, trainer, *backend, rank);
    if (result.signal != 0) {
      job.signal = result.signal;
      return;
    }
    results.push_back(result_of(job, run, trainer, rank));
  }
  const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
  if (rank.is_first()) report_results(job, results, peaks);
}

// What --save holds is gone on with, if it is of this command.
void require_same_runs(const FinetuneJob& job) {
  for (std::int64_t index = 0; index < job.config.seeds; ++index) {
    const TrainConfig run = train_config(job.config, job.training->examples(), index);
    if (!run.load.empty()) require_same_run(job.config, run, data_of(*job.training, *job.validation));
  }
}

// Once, however many runs start from the weights.
void tell_of_labels(const FinetuneConfig& config, const RankLauncher& launcher) {
  if (config.load.empty() || launcher.environment().process != 0) return;
  const std::string note = note_of_unnamed_labels(find_weights(config.load), config.model);
  if (!note.empty()) fmt::print(stderr, "{}\n", note);
}

void run(const FinetuneConfig& config) {
  const double began = monotonic_seconds();
  const RankLauncher launcher(config.threads, config.backend, config.bind);
  const Tokenizer tokenizer = Tokenizer::load(config.tokenizer);
  const auto open = [&](const std::vector<std::filesystem::path>& files, bool training) {
    return open_task(config.task, files, tokenizer, config.reading, training);
  };
  EndSignals end_signals(launcher.environment().process == 0);
  std::atomic<int> signal{0};
  const FinetuneJob job{.config = config,
                        .began = began,
                        .end_signals = end_signals,
                        .signal = signal,
                        .layout = launcher.description(config.mesh()),
                        .training = open(config.train_data, true),
                        .validation = open(config.valid_data, false),
                        .test = config.test_data.empty() ? nullptr : open(config.test_data, false)};
  if (!job.validation->has_labels()) {
    throw_user_error("--valid-data has no labels to score by; give a set that has them, and this one as --test-data");
  }
  require_same_runs(job);
  tell_of_labels(config, launcher);
  launcher.run(config.mesh(), to_toml(config), [&](const Rank& rank) { run_rank(job, rank); });
  if (signal != 0) throw EndedBySignal(signal);
}

}  // namespace

Command finetune_command() {
  Command command =
      make_command<FinetuneConfig>("finetune", "trains a BERT for a task: MNLI, QQP, SQuAD or RACE", nullptr);
  command.run = [](std::span<const std::string> arguments) {
    FinetuneConfig config = read_finetune_config(arguments);
    require_separate_files(fields_of(config));
    run(config);
  };
  return command;
}

}  // namespace teratron
