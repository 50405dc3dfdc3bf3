#include "finetune/finetune_task.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/native/folders.h"
#include "finetune/outputs.h"
#include "model/negatives.h"
#include "runtime/weight_use.h"
#include "tasks/pair_encoding.h"
#include "tasks/task_samples.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

template <class Value>
void add_difference(std::vector<std::string>& found, std::string_view flag, const Value& there, const Value& here) {
  if (there != here) found.push_back(fmt::format("--{} {} there, {} now", flag, there, here));
}

// Epochs of a run: a validation ends each.
std::int64_t epochs_of(const TrainConfig& run) {
  return run.train_iters / std::max<std::int64_t>(run.output.eval_interval, 1);
}

std::int64_t sequences_of_example(const ModelConfig& model) {
  if (model.head == ModelHead::kVectors) return model.vectors.texts;
  return model.head == ModelHead::kChoice ? kChoices : 1;
}

// Differences of the learning rate's schedule, by the flags of finetune that it follows from.
std::vector<std::string> schedule_differences(const TrainConfig& there, const FinetuneConfig& config,
                                              const TrainConfig& here) {
  std::vector<std::string> found;
  add_difference(found, "epochs", epochs_of(there), epochs_of(here));
  if (warmup_updates(config, there.train_iters) != there.optimizer.learning_rate.warmup) {
    const auto updates = static_cast<double>(there.train_iters);
    add_difference(found, "lr-warmup-fraction",
                   fmt::format("{:.3g}", static_cast<double>(there.optimizer.learning_rate.warmup) / updates),
                   fmt::format("{:.3g}", config.warmup_fraction));
  }
  return found;
}

std::string text_of_sets(const TaskSet& training, const TaskSet& validation) {
  return fmt::format("{}\nto validate on: {}{}", training.notes(), validation.notes(),
                     note_of(validation.examples().count_in(training.examples()), "", "of them trained on, too"));
}

}  // namespace

DataIdentity data_of(const TaskSet& training, const TaskSet& validation) {
  const TaskExamples& examples = training.examples();
  return {.documents = examples.count(),
          .tokens = std::ssize(examples.ids),
          .examples = examples.checksum(),
          .validation_examples = validation.examples().checksum()};
}

TrainingTask make_finetune_task(const TrainConfig& run, TaskKind kind, const TaskSet& training,
                                const TaskSet& validation, GroupRank tensor) {
  const TaskExamples& examples = training.examples();
  auto model = std::make_unique<Bert>(run.model.config, tensor);
  TrainingTask task{.run = {.kind = RunKind::kFinetuning, .task = std::string(name_of(kind))},
                    .config = run.model.config,
                    .training = std::make_unique<TaskSamples>(examples, run.model.seq_length, SampleOrder::kShuffled,
                                                              static_cast<std::uint64_t>(run.seed)),
                    .split_description = text_of_sets(training, validation),
                    .data = data_of(training, validation)};
  task.scores = [&validation, &bert = *model](Executor& executor) {
    return validation.scores(outputs_of(executor, bert, validation.examples()));
  };
  task.model = std::move(model);
  return task;
}

void require_same_run(const FinetuneConfig& config, const TrainConfig& run, const DataIdentity& data) {
  const CheckpointInfo checkpoint = read_checkpoint_info(run.output.load);
  require_usable(WeightUse::kFinetuneAgain, source_of(checkpoint), name_of(config.task), run.model.config);
  require_same_data(checkpoint, {.kind = RunKind::kFinetuning, .task = std::string(name_of(config.task))}, data);
  FinetuneConfig ours = config;
  FieldList flags = fields_of(ours);
  std::vector<std::string> found;
  bool has_other_schedule = false;
  for (const SettingDifference& one : differences_from(checkpoint, run)) {
    if (one.rule == ResumeRule::kAllowed) continue;
    if (flags.find(one.field) == nullptr) {  // no flag of finetune
      has_other_schedule = true;
    } else {
      add_difference(found, one.field, one.there, one.here);
    }
  }
  const ModelConfig& model = run.model.config;
  add_difference(found, "pooling", name_of(checkpoint.model.vectors.pooling), name_of(model.vectors.pooling));
  const std::optional<TrainConfig> there = settings_of(checkpoint);
  const std::int64_t each = sequences_of_example(model);
  if (there) {  // other batches may come to as many updates
    add_difference(found, "global-batch-size", there->batch.global_batch_size / each,
                   run.batch.global_batch_size / each);
  }
  if (there && ranks_negatives(model)) {
    add_difference(found, "micro-batch-size", there->batch.micro_batch_size / each,
                   run.batch.micro_batch_size / each);  // of negatives
  }
  if (has_other_schedule && there) {
    const std::vector<std::string> more = schedule_differences(*there, config, run);
    found.insert(found.end(), more.begin(), more.end());
  }
  if (found.empty() && !has_other_schedule) return;
  if (found.empty()) found.push_back(fmt::format("{} updates now", run.train_iters));
  throw_user_error(
      "'{0}' holds a run with other settings: {1}; give that run's settings to go on with it, or choose another --save "
      "(--load {2} starts from its best weights)",
      run.output.load.string(), fmt::join(found, "; "), (run.output.load / kBestLink).string());
}

}  // namespace teratron
