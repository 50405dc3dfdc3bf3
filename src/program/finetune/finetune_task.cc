#include "finetune/finetune_task.h"

#include "finetune/outputs.h"
#include "tasks/task_samples.h"

namespace teratron {

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
                    .split_description = training.notes(),
                    .data = data_of(training, validation)};
  task.scores = [&validation, &bert = *model](Executor& executor) {
    return validation.scores(outputs_of(executor, bert, validation.examples()));
  };
  task.model = std::move(model);
  return task;
}

}  // namespace teratron
