// Settings of how texts of a task are read: those that `finetune` and `eval TASK` have in common.
#pragma once

#include <filesystem>
#include <map>
#include <optional>

#include "model/pooling.h"
#include "options/fields.h"
#include "tasks/task.h"

namespace teratron {

// Reading of texts: flags of `finetune` and `eval TASK`. 0: the value of default_reading().
struct TaskReadingSettings {
  TaskReading given{.seq_length = 0};
  std::optional<Pooling> pooling;  // of embed; nothing: as the folder of --load says, else the mean

  // Reading with all values, for a model of so many positions.
  TaskReading reading_for(TaskKind task, std::int64_t positions) const;
  Faults faults() const;
};
void add_task_reading_fields(FieldList& list, TaskReadingSettings& settings);
// Columns of classify's files by the flags that name them, without those that are empty.
std::map<std::string, std::string> columns_of(const TaskReading& reading);
// Pooling of embed's vectors: the given one, that of the weights in `load`, or the mean.
Pooling pooling_for(const TaskReadingSettings& settings, const std::filesystem::path& load);
void add_label_fields(FieldList& list, TaskReading& reading);  // those that `score` has, too

}  // namespace teratron
