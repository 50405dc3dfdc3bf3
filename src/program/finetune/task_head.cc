#include "finetune/task_head.h"

#include <fmt/format.h>

#include "base/error.h"

namespace teratron {

void set_task_head(ModelConfig& model, TaskKind task, const TaskReading& reading) {
  const TaskShape shape = shape_of(task, reading);
  model.set_pretraining_head();
  const bool has_labels = shape.outputs == TaskOutputs::kLabels || shape.outputs == TaskOutputs::kTokenLabels;
  if (has_labels && shape.count > 0) {
    model.num_labels = shape.count;
    model.label_names = label_names(task, reading);
  }
  switch (shape.outputs) {
    case TaskOutputs::kLabels: model.head = ModelHead::kClassification; break;
    case TaskOutputs::kChoice: model.head = ModelHead::kChoice; break;
    case TaskOutputs::kSpans: model.head = ModelHead::kSpans; break;
    case TaskOutputs::kTokenLabels: model.head = ModelHead::kTokens; break;
    case TaskOutputs::kVectors:
      model.head = ModelHead::kVectors;
      model.vectors.texts = reading.negative_column.empty() ? 2 : 3;
      model.vectors.are_similarities = reading.labels.are_numbers;
      break;
  }
}

LabelSet labels_of(const WeightSource& source, TaskKind task) {
  const ModelConfig& model = source.model;
  ModelConfig needed;
  set_task_head(needed, task);
  if (model.head != needed.head) {
    throw_user_error(
        "the model in '{0}' tells no labels {1}apart{2}; `teratron finetune --task {3} --load {0}` trains one for "
        "yours",
        source.folder.string(), needed.head == ModelHead::kTokens ? "of words " : "",
        source.unusable_head.empty() ? "" : ": " + source.unusable_head, name_of(task));
  }
  if (model.num_labels == 1) return {.are_numbers = true};
  LabelSet labels{.names = model.label_names};
  for (std::int64_t row = std::ssize(labels.names); row < model.num_labels; ++row) {
    labels.names.push_back(fmt::format("{}", row));  // which nobody has named
  }
  return labels;
}

}  // namespace teratron
