// teratron finetune: trains a BERT for MNLI, QQP, SQuAD or RACE, and says how well it does there.
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
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
#include "finetune/search.h"
#include "runtime/backend_choice.h"
#include "runtime/weight_use.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

// What all ranks of a process read.
struct FinetuneJob {
  const FinetuneConfig& config;
  std::vector<SearchPoint> points;  // of --search
  double began;                     // on the monotonic clock
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

// A point of --search after its run.
struct SearchedPoint {
  SearchPoint point;
  std::int64_t iteration = 0;                                                          // of its best checkpoint
  std::vector<TaskScore> validation;                                                   // none where training diverged
  double score() const { return validation.empty() ? -1 : validation.front().value; }  // in per cent
};

void add_scores(FinetuneResult& result, const FinetuneJob& job) {
  result.validation = job.validation->scores(result.validation_outputs);
  if (job.test && job.test->has_labels()) result.test = job.test->scores(result.test_outputs);
}

void write_predictions(const FinetuneResult& result, const FinetuneJob& job, const std::filesystem::path& folder) {
  const std::string_view extension = entry_of(job.config.task).predictions_extension;
  job.validation->write_predictions(folder / fmt::format("predictions-valid{}", extension), result.validation_outputs);
  if (job.test) job.test->write_predictions(folder / fmt::format("predictions-test{}", extension), result.test_outputs);
}

// Loads the checkpoint with the highest score in place of the last one. Returns its iteration.
std::int64_t load_best(const TrainConfig& run, Trainer& trainer, const Rank& rank) {
  const std::filesystem::path best = run.output.save / kBestLink;
  const CheckpointInfo checkpoint = read_checkpoint_info(best);
  Executor& executor = trainer.executor();
  load_weights(best, trainer.task().config, executor.all_parameters(), executor.backend(), rank.is_first());
  return checkpoint.state.iteration;
}

// Of the checkpoint with the highest score.
FinetuneResult result_of(const FinetuneJob& job, const TrainConfig& run, Trainer& trainer, const Rank& rank) {
  FinetuneResult result{.seed = run.seed, .iteration = load_best(run, trainer, rank)};
  Executor& executor = trainer.executor();
  const auto& model = static_cast<const Bert&>(*trainer.task().model);
  result.validation_outputs = outputs_of(executor, model, job.validation->examples());
  if (job.test) result.test_outputs = outputs_of(executor, model, job.test->examples());
  if (!rank.is_first()) return {};
  add_scores(result, job);
  write_predictions(result, job, run.output.save);
  return result;
}

// Of the same, without the test set, which has no part in the search. The scores are those of all ranks.
SearchedPoint searched(const FinetuneJob& job, const SearchPoint& point, const TrainConfig& run, Trainer& trainer,
                       const Rank& rank) {
  SearchedPoint result{.point = point, .iteration = load_best(run, trainer, rank)};
  const auto& model = static_cast<const Bert&>(*trainer.task().model);
  result.validation = job.validation->scores(outputs_of(trainer.executor(), model, job.validation->examples()));
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
  write_predictions(result, job, job.config.run.output.save);
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

nlohmann::ordered_json json_of(const SearchPoint& point) {
  return {{"global_batch_size", point.batch}, {"lr", point.learning_rate}};
}

nlohmann::ordered_json json_of(const std::vector<SearchedPoint>& points) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const SearchedPoint& each : points) {
    json.push_back(json_of(each.point));
    json.back()["iteration"] = each.iteration;
    json.back()["valid"] = each.validation.empty() ? nlohmann::ordered_json() : json_of(each.validation);
  }
  return json;
}

// A row a point.
std::string text_of(const std::vector<SearchedPoint>& points, std::size_t chosen) {
  std::vector<std::string> heading = {"batch size", "learning rate", "iteration"};
  for (const TaskScore& score : points[chosen].validation) heading.emplace_back(score.name);
  TextTable table(std::vector<Align>(heading.size() + 1, Align::kRight));
  table.row(heading);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SearchPoint& point = points[i].point;
    std::vector<std::string> row = {fmt::format("{}", point.batch), fmt::format("{}", point.learning_rate),
                                    fmt::format("{}", points[i].iteration)};
    for (const TaskScore& score : points[i].validation) row.push_back(fmt::format("{:.2f}", score.value));
    if (points[i].validation.empty()) row.back() = "diverged";
    if (i == chosen) row.emplace_back("chosen");
    table.row(row);
  }
  return "search, by the first score of --valid-data:\n" + table.text();
}

// What the ranks have done: the search, where there was one, and the runs.
struct FinetuneResults {
  std::vector<SearchedPoint> points;
  std::size_t chosen = 0;
  std::vector<FinetuneResult> runs;
};

void report_results(const FinetuneJob& job, const FinetuneResults& results, const std::vector<std::int64_t>& peaks) {
  const FinetuneConfig& config = job.config;
  const std::vector<FinetuneResult>& runs = results.runs;
  nlohmann::ordered_json json = {{"task", name_of(config.task)}};
  std::string text;
  if (!results.points.empty()) {
    json["search"] = json_of(results.points);
    json["chosen"] = json_of(results.points[results.chosen].point);
    text += text_of(results.points, results.chosen);
  }
  json["runs"] = nlohmann::ordered_json::array();
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
  report(config.run.output.json, text, json.dump());
}

// A run from its start, or from where it was left, to its end. Returns false where a signal ended it; else
// finished(trainer) is called, on every rank.
bool run_to_end(const FinetuneJob& job, const TrainConfig& run, Backend& backend, const Rank& rank,
                const std::function<void(Trainer&)>& finished) {
  FinetuneConfig own = job.config;
  FieldList fields = fields_of(own);
  std::optional<CheckpointInfo> checkpoint;
  if (!run.output.load.empty()) checkpoint = read_checkpoint_info(run.output.load);
  Trainer trainer(run, backend,
                  make_finetune_task(run, job.config.task, *job.training, *job.validation, rank.mesh->place().tensor),
                  rank.mesh);
  const TrainingRun told{.config = run,
                         .checkpoint = checkpoint ? &*checkpoint : nullptr,
                         .began = job.began,
                         .end_signals = job.end_signals,
                         .layout = job.layout,
                         .memory = {.vocab_size = run.model.config.vocab_size,
                                    .compute_dtype = backend.compute_dtype(),
                                    .threads = computing_threads(backend)},
                         .peak_flops = peak_flops_of(run, backend, rank),
                         .has_flag = [&fields](const std::string& flag) { return fields.find(flag) != nullptr; }};
  const TrainingResult result = run_training(told, trainer, backend, rank);
  if (result.signal != 0) {
    job.signal = result.signal;
    return false;
  }
  finished(trainer);
  return true;
}

// The first rank's scores choose, so that all ranks take the same point.
std::size_t chosen_of(const std::vector<SearchedPoint>& points, const Rank& rank) {
  std::vector<double> scores;
  for (const SearchedPoint& each : points) scores.push_back(rank.is_first() ? each.score() : 0);
  rank.world.all_reduce_host(scores);
  return best_of(scores);
}

// Returns false where a signal ended it.
bool run_search(const FinetuneJob& job, Backend& backend, const Rank& rank, FinetuneResults& results) {
  for (std::size_t i = 0; i < job.points.size(); ++i) {
    const SearchPoint& point = job.points[i];
    if (rank.is_first()) {
      tell_user(fmt::format("search: point {} of {}, batch size {}, learning rate {}", i + 1, job.points.size(),
                            point.batch, point.learning_rate));
    }
    const TrainConfig run = train_config(at_point(job.config, point), job.training->examples(), 0);
    const auto finished = [&](Trainer& trainer) { results.points.push_back(searched(job, point, run, trainer, rank)); };
    try {
      if (!run_to_end(job, run, backend, rank, finished)) return false;
    } catch (const DivergedError& error) {
      if (rank.is_first()) tell_user(fmt::format("search: {}", error.what()));
      results.points.push_back({.point = point});
    }
  }
  results.chosen = chosen_of(results.points, rank);
  if (results.points[results.chosen].score() < 0) {
    throw_user_error("training diverged at every point of --search; give it lower rates: --search-lrs");
  }
  if (rank.is_first()) tell_user(text_of(results.points, results.chosen));
  return true;
}

void run_rank(const FinetuneJob& job, const Rank& rank) {
  const std::unique_ptr<Backend> backend = make_backend(job.config.run.backend, rank);
  FinetuneResults results;
  FinetuneConfig config = job.config;
  if (config.search) {
    if (!run_search(job, *backend, rank, results)) return;
    config = at_point(config, results.points[results.chosen].point);
  }
  for (std::int64_t index = 0; index < config.seeds; ++index) {
    const TrainConfig run = train_config(config, job.training->examples(), index);
    const auto finished = [&](Trainer& trainer) { results.runs.push_back(result_of(job, run, trainer, rank)); };
    if (!run_to_end(job, run, *backend, rank, finished)) return;
  }
  const std::vector<std::int64_t> peaks = rank.peak_memory(*backend);
  if (rank.is_first()) report_results(job, results, peaks);
}

// What --save holds is gone on with, if it is of this command.
void require_same_runs(const FinetuneJob& job, const FinetuneConfig& config) {
  for (std::int64_t index = 0; index < config.seeds; ++index) {
    const TrainConfig run = train_config(config, job.training->examples(), index);
    if (!run.output.load.empty()) require_same_run(config, run, data_of(*job.training, *job.validation));
  }
}

void require_same_runs(const FinetuneJob& job) {
  if (!job.config.search) return require_same_runs(job, job.config);
  for (const SearchPoint& point : job.points) require_same_runs(job, at_point(job.config, point));
}

// Once, however many runs start from the weights.
void tell_of_labels(const FinetuneConfig& config, const RankLauncher& launcher) {
  if (config.load.empty() || launcher.environment().process != 0) return;
  const std::string note = note_of_unnamed_labels(find_weights(config.load), config.run.model.config);
  if (!note.empty()) fmt::print(stderr, "{}\n", note);
}

void run(const FinetuneConfig& config) {
  const double began = monotonic_seconds();
  const RankLauncher launcher(config.run.layout.threads, config.run.backend.kind, config.run.layout.bind);
  const Tokenizer tokenizer = Tokenizer::load(config.run.model.tokenizer);
  const auto open = [&](const std::vector<std::filesystem::path>& files, bool training) {
    return open_task(config.task, files, tokenizer, config.reading.given, training);
  };
  EndSignals end_signals(launcher.environment().process == 0);
  std::atomic<int> signal{0};
  FinetuneJob job{.config = config,
                  .points = {},
                  .began = began,
                  .end_signals = end_signals,
                  .signal = signal,
                  .layout = launcher.description(config.run.layout.mesh()),
                  .training = open(config.train_data, true),
                  .validation = open(config.valid_data, false),
                  .test = config.test_data.empty() ? nullptr : open(config.test_data, false)};
  if (!job.validation->has_labels()) {
    throw_user_error("--valid-data has no labels to score by; give a set that has them, and this one as --test-data");
  }
  if (config.search) job.points = search_points(config, job.training->examples().count());
  require_same_runs(job);
  tell_of_labels(config, launcher);
  launcher.run(config.run.layout.mesh(), to_toml(config), [&](const Rank& rank) { run_rank(job, rank); });
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
