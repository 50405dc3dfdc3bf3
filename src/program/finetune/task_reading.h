// Settings of how texts of a task are read: those that `finetune` and `eval TASK` have in common.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/pooling.h"
#include "options/fields.h"
#include "tasks/task.h"

namespace teratron {

// Reading of texts: flags of `finetune` and `eval TASK`. 0: the value of default_reading().
struct TaskReadingSettings {
  TaskReading given{.seq_length = 0};
  std::optional<Pooling> pooling;  // of embed; nullopt: that of the weights of --load, else the mean

  // Reading with all values, for a model of so many positions.
  TaskReading reading_for(TaskKind task, std::int64_t positions) const;
  Faults faults() const;
};
void add_task_reading_fields(FieldList& list, TaskReadingSettings& settings);
// Values of those flags that were given, by flag, for RunOrigin::reading. The model itself records --label-names and
// --pooling.
std::map<std::string, std::string> given_reading(TaskReadingSettings& settings, FieldList& fields);
// Takes the values that a run recorded, except those of the flags in `named`.
void take_reading(const std::map<std::string, std::string>& run, const std::set<std::string>& named,
                  TaskReadingSettings& settings);
// Pooling of embed's vectors: the given one, that of the weights in `load`, or the mean.
Pooling pooling_for(const TaskReadingSettings& settings, const std::filesystem::path& load);
void add_label_fields(FieldList& list, TaskReading& reading);  // those that `score` has, too

}  // namespace teratron
