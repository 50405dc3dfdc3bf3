#include "tasks/task.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

constexpr std::array kTasks = {
#define TERATRON_ENTRY(kind) &kind##Task,
    TERATRON_TASKS(TERATRON_ENTRY)
#undef TERATRON_ENTRY
};

constexpr std::array kKinds = {
#define TERATRON_KIND(kind) TaskKind::kind,
    TERATRON_TASKS(TERATRON_KIND)
#undef TERATRON_KIND
};

}  // namespace

const TaskEntry& entry_of(TaskKind kind) { return *kTasks.at(static_cast<std::size_t>(kind)); }

std::span<const TaskKind> all_tasks() { return kKinds; }

std::string_view name_of(TaskKind kind) { return entry_of(kind).name; }

TaskShape shape_of(TaskKind kind, const TaskReading& reading) {
  TaskShape shape = entry_of(kind).shape;
  if (has_labels_of_files(kind)) shape.count = reading.labels.are_numbers ? 1 : std::ssize(reading.labels.names);
  return shape;
}

std::vector<std::string> label_names(TaskKind kind, const TaskReading& reading) {
  if (has_labels_of_files(kind)) return reading.labels.names;
  return {entry_of(kind).labels.begin(), entry_of(kind).labels.end()};
}

bool has_labels_of_files(TaskKind kind) { return entry_of(kind).has_labels_of_files; }

LabelSet labels_in_files(TaskKind kind, std::span<const std::filesystem::path> files, const TaskReading& reading) {
  check(entry_of(kind).labels_in_files != nullptr, "a task whose files decide its labels");
  return entry_of(kind).labels_in_files(files, reading);
}

TaskReading default_reading(TaskKind kind) {
  const TaskEntry& entry = entry_of(kind);
  TaskReading reading{.seq_length = entry.seq_length, .max_query_length = entry.max_query_length};
  reading.text_column = entry.text_column;
  reading.label_column = entry.label_column;
  return reading;
}

std::unique_ptr<TaskSet> open_task(TaskKind kind, std::span<const std::filesystem::path> files,
                                   const Tokenizer& tokenizer, const TaskReading& reading, bool training) {
  if (files.empty()) throw_user_error("no file of {} is named; name at least one", name_of(kind));
  return entry_of(kind).open(files, tokenizer, reading, training);
}

TaskOutputValues mean_of(std::span<const TaskOutputValues> models) {
  check(!models.empty(), "mean_of: no model");
  TaskOutputValues means = models.front();
  for (std::size_t i = 0; i < means.size(); ++i) {
    std::vector<double> sums(means[i].size());
    for (const TaskOutputValues& model : models) {
      check_equal(model.size(), means.size(), "examples that a model of the ensemble has outputs of");
      check_equal(model[i].size(), sums.size(), "outputs of an example");
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += static_cast<double>(model[i][k]);
    }
    const auto count = static_cast<double>(models.size());
    for (std::size_t k = 0; k < sums.size(); ++k) means[i][k] = static_cast<float>(sums[k] / count);
  }
  return means;
}

std::size_t median_of(const std::vector<double>& scores) {
  check(!scores.empty(), "scores");
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t run) { return scores[run]; });
  const double median = scores[order[(order.size() - 1) / 2]];
  return static_cast<std::size_t>(std::ranges::find(scores, median) - scores.begin());
}

}  // namespace teratron
