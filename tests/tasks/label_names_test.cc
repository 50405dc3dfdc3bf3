// The labels of tasks, which scores, files and checkpoints share.
#include "tasks/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/glue/format.h"

namespace teratron::testing {
namespace {

TEST(TaskLabelNames, AreAsManyAsTheTaskHasLabelsAndNoneElsewhere) {
  for (const TaskKind task : all_tasks()) {
    TaskReading reading;
    reading.labels.names = {"a", "b", "c", "d"};
    const TaskShape shape = shape_of(task, reading);
    const bool has_labels = shape.outputs == TaskOutputs::kLabels || shape.outputs == TaskOutputs::kTokenLabels;
    EXPECT_EQ(std::ssize(label_names(task, reading)), has_labels ? shape.count : 0) << name_of(task);
  }
}

// As huggingface.co/datasets/nyu-mll/glue names them; the numbers are Megatron-LM's and GLUE's files'.
TEST(TaskLabelNames, StandInTheOrderOfTheirNumbers) {
  EXPECT_THAT(label_names(TaskKind::kMnli), ::testing::ElementsAre("contradiction", "entailment", "neutral"));
  EXPECT_THAT(label_names(TaskKind::kQqp), ::testing::ElementsAre("not_duplicate", "duplicate"));
  EXPECT_THAT(glue::labels_of(glue::Task::kMnli), ::testing::ElementsAreArray(label_names(TaskKind::kMnli)));
  EXPECT_THAT(glue::labels_of(glue::Task::kQqp), ::testing::ElementsAre("0", "1"));
}

}  // namespace
}  // namespace teratron::testing
