#include "finetune/finetuning.h"

#include <fmt/format.h>

#include <functional>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/folders.h"
#include "console/text_table.h"
#include "finetune/finetune_task.h"
#include "finetune/outputs.h"
#include "finetune/search.h"
#include "run/run.h"
#include "runtime/backend_choice.h"
#include "runtime/weight_use.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Sets of examples, opened once per process and shared by its ranks.
class Sets {
 public:
  explicit Sets(const FinetuneConfig& config)
      : kind_(config.task),
        tokenizer_(Tokenizer::load(config.run.model.tokenizer)),
        training_(open(config, config.train_data, true)),
        validation_(open(config, config.valid_data, false)),
        test_(config.test_data.empty() ? nullptr : open(config, config.test_data, false)) {
    if (validation_->has_labels()) return;
    throw_user_error("--valid-data has no labels to score by; give a set that has them, and this one as --test-data");
  }

  const TaskSet& training() const { return *training_; }
  const TaskSet& validation() const { return *validation_; }
  const TaskSet* test() const { return test_.get(); }  // nullptr: none

  void add_scores(FinetuneResult& result) const {
    result.validation = validation_->scores(result.validation_outputs);
    if (test_ && test_->has_labels()) result.test = test_->scores(result.test_outputs);
  }
  void write_predictions(const FinetuneResult& result, const fs::path& folder) const {
    const std::string_view extension = entry_of(kind_).predictions_extension;
    validation_->write_predictions(folder / fmt::format("predictions-valid{}", extension), result.validation_outputs);
    if (test_) test_->write_predictions(folder / fmt::format("predictions-test{}", extension), result.test_outputs);
  }

 private:
  std::unique_ptr<TaskSet> open(const FinetuneConfig& config, const std::vector<fs::path>& files, bool training) const {
    return open_task(config.task, files, tokenizer_, config.reading.given, training);
  }

  const TaskKind kind_;
  const Tokenizer tokenizer_;
  const std::unique_ptr<TaskSet> training_, validation_, test_;
};

// All runs of one rank.
class RankRuns {
 public:
  RankRuns(const FinetuneConfig& config, const std::vector<SearchPoint>& points, const Sets& sets, RunLaunch& launch,
           const Rank& rank)
      : config_(config),
        points_(points),
        sets_(sets),
        launch_(launch),
        rank_(rank),
        backend_(make_backend(config.run.backend, rank)) {}

  FinetuneResults all() {
    FinetuneConfig config = config_;
    if (config.search) {
      if (!search()) return std::move(results_);
      config = at_point(config, results_.points[results_.chosen].point);
    }
    for (std::int64_t index = 0; index < config.seeds; ++index) {
      const TrainConfig run = train_config(config, sets_.training().examples(), index);
      const auto finished = [&](Trainer& trainer) { results_.runs.push_back(result_of(run, trainer)); };
      if (!run_to_end(run, finished)) return std::move(results_);
    }
    results_.peak_memory = rank_.peak_memory(*backend_);
    results_.is_complete = true;
    return std::move(results_);
  }

 private:
  // Runs from the start, or from a checkpoint, to the end. Returns false if the run ended early; else it calls
  // finished(trainer), on every rank.
  bool run_to_end(const TrainConfig& config, const std::function<void(Trainer&)>& finished) {
    FinetuneConfig own = config_;
    FieldList flags = fields_of(own);
    std::optional<CheckpointInfo> checkpoint;
    if (!config.output.load.empty()) checkpoint = read_checkpoint_info(config.output.load);
    TrainingTask task = make_finetune_task(config, config_.task, sets_.training(), sets_.validation(),
                                           rank_.mesh->coordinates().tensor);
    task.run.reading = config_.given_reading;
    Run run({.launch = launch_,
             .rank = rank_,
             .backend = *backend_,
             .config = config,
             .checkpoint = checkpoint ? &*checkpoint : nullptr,
             .has_flag = [&flags](const std::string& flag) { return flags.find(flag) != nullptr; }},
            std::move(task));
    const TrainingResult result = run.run();
    results_.signal = result.signal;
    if (result.end != RunEnd::kComplete) return false;
    finished(run.trainer());
    return true;
  }

  // Runs all points. Returns false if a run ended early.
  bool search() {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const SearchPoint& point = points_[i];
      if (rank_.is_first()) {
        report_to_user(fmt::format("search: point {} of {}, batch size {}, learning rate {}", i + 1, points_.size(),
                                   point.batch, point.learning_rate));
      }
      const TrainConfig run = train_config(at_point(config_, point), sets_.training().examples(), 0);
      const auto finished = [&](Trainer& trainer) { results_.points.push_back(searched(point, run, trainer)); };
      try {
        if (!run_to_end(run, finished)) return false;
      } catch (const DivergedError& error) {
        if (rank_.is_first()) report_to_user(fmt::format("search: {}", error.what()));
        results_.points.push_back({.point = point});
      }
    }
    results_.chosen = chosen();
    if (results_.points[results_.chosen].validation.empty()) {
      throw_user_error("training diverged at every point of --search; give it lower rates: --search-lrs");
    }
    if (rank_.is_first()) report_to_user(search_table(results_.points, results_.chosen));
    return true;
  }

  // Best point by the first rank's scores, the same on all ranks.
  std::size_t chosen() const {
    std::vector<double> scores;
    for (const SearchedPoint& each : results_.points) scores.push_back(rank_.is_first() ? each.score() : 0);
    rank_.world.all_reduce_host(scores);
    return best_of(scores);
  }

  // Loads the checkpoint with the highest score. Returns its iteration.
  std::int64_t load_best(const TrainConfig& run, Trainer& trainer) const {
    const fs::path best = run.output.save / kBestLink;
    const CheckpointInfo checkpoint = read_checkpoint_info(best);
    Executor& executor = trainer.executor();
    load_weights(best, trainer.task().config, executor.all_parameters(), executor.backend(), rank_.is_first());
    return checkpoint.state.iteration;
  }

  static TaskOutputValues outputs(Trainer& trainer, const TaskSet& set) {
    return outputs_of(trainer.executor(), static_cast<const Bert&>(*trainer.task().model), set.examples());
  }

  // Result of the checkpoint with the highest score.
  FinetuneResult result_of(const TrainConfig& run, Trainer& trainer) const {
    FinetuneResult result{.seed = run.seed, .iteration = load_best(run, trainer)};
    result.validation_outputs = outputs(trainer, sets_.validation());
    if (sets_.test() != nullptr) result.test_outputs = outputs(trainer, *sets_.test());
    if (!rank_.is_first()) return {};
    sets_.add_scores(result);
    sets_.write_predictions(result, run.output.save);
    return result;
  }

  // Scores of a point on the validation set, on all ranks. The search does not use the test set.
  SearchedPoint searched(const SearchPoint& point, const TrainConfig& run, Trainer& trainer) const {
    SearchedPoint result{.point = point, .iteration = load_best(run, trainer)};
    result.validation = sets_.validation().scores(outputs(trainer, sets_.validation()));
    return result;
  }

  const FinetuneConfig& config_;
  const std::vector<SearchPoint>& points_;
  const Sets& sets_;
  RunLaunch& launch_;
  const Rank& rank_;
  const std::unique_ptr<Backend> backend_;
  FinetuneResults results_;
};

// UserError: --save holds runs of other settings or data. Runs of this command are resumed.
void require_same_runs(const FinetuneConfig& config, const Sets& sets) {
  for (std::int64_t index = 0; index < config.seeds; ++index) {
    const TrainConfig run = train_config(config, sets.training().examples(), index);
    if (!run.output.load.empty()) require_same_run(config, run, data_of(sets.training(), sets.validation()));
  }
}

// Reports once, for all runs, unnamed labels and examples to test on that are trained on. Those to validate on are
// counted in the words of a run.
void report_at_start(const FinetuneConfig& config, const Sets& sets) {
  const TaskExamples* const test = sets.test() == nullptr ? nullptr : &sets.test()->examples();
  const std::int64_t both = test == nullptr ? 0 : test->count_in(sets.training().examples());
  if (both > 0) report_to_user(fmt::format("to test on: {} of {} are trained on, too", both, test->count()));
  if (config.load.empty()) return;
  const std::string note = note_of_unnamed_labels(find_weights(config.load), config.run.model.config);
  if (!note.empty()) report_to_user(note);
}

// Scores and writes predictions of the mean of all runs' outputs.
FinetuneResult ensemble_of(const std::vector<FinetuneResult>& runs, const FinetuneConfig& config, const Sets& sets) {
  std::vector<TaskOutputValues> validation, test;
  for (const FinetuneResult& run : runs) {
    validation.push_back(run.validation_outputs);
    test.push_back(run.test_outputs);
  }
  FinetuneResult result{.validation_outputs = mean_of(validation)};
  if (sets.test() != nullptr) result.test_outputs = mean_of(test);
  sets.add_scores(result);
  sets.write_predictions(result, config.run.output.save);
  return result;
}

std::size_t median_run(const std::vector<FinetuneResult>& runs) {
  std::vector<double> scores;
  for (const FinetuneResult& run : runs) scores.push_back(run.validation.front().value);
  return median_of(scores);
}

}  // namespace

std::string search_table(const std::vector<SearchedPoint>& points, std::size_t chosen) {
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

FinetuneResults finetune(const FinetuneConfig& config) {
  RunLaunch launch(config.run);
  const Sets sets(config);
  const std::vector<SearchPoint> points =
      config.search ? search_points(config, sets.training().examples().count()) : std::vector<SearchPoint>();
  if (!config.search) require_same_runs(config, sets);
  for (const SearchPoint& point : points) require_same_runs(at_point(config, point), sets);
  if (launch.is_first_process()) report_at_start(config, sets);
  FinetuneResults results;
  launch.run(to_toml(config), [&](const Rank& rank) {
    FinetuneResults of_rank = RankRuns(config, points, sets, launch, rank).all();
    if (RunLaunch::speaks_for_process(rank)) results = std::move(of_rank);
  });
  if (!launch.is_first_process()) results.runs.clear();
  if (!results.is_complete || results.runs.empty()) return results;
  results.median = median_run(results.runs);
  if (config.ensemble) results.ensemble = ensemble_of(results.runs, config, sets);
  return results;
}

}  // namespace teratron
