#include "tasks/task.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "tasks/glue/pairs.h"
#include "tasks/race/choices.h"
#include "tasks/squad/samples.h"

namespace teratron {
namespace {

using Opener = std::unique_ptr<TaskSet> (*)(std::span<const std::filesystem::path>, const Tokenizer&,
                                            const TaskReading&, bool);

struct TaskEntry {
  TaskKind kind;
  std::string_view name;
  TaskShape shape;
  std::int64_t seq_length, max_query_length;
  Opener open;
};

template <glue::Task task>
std::unique_ptr<TaskSet> open_pairs(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                    const TaskReading& reading, bool training) {
  return glue::open_pairs(task, files, tokenizer, reading, training);
}

template <squad::Version version>
std::unique_ptr<TaskSet> open_questions(std::span<const std::filesystem::path> files, const Tokenizer& tokenizer,
                                        const TaskReading& reading, bool training) {
  return squad::open_samples(version, files, tokenizer, reading, training);
}

constexpr std::array kTasks = {
    TaskEntry{TaskKind::kMnli, "mnli", {TaskOutputs::kLabels, 3}, 128, 0, open_pairs<glue::Task::kMnli>},
    TaskEntry{TaskKind::kQqp, "qqp", {TaskOutputs::kLabels, 2}, 128, 0, open_pairs<glue::Task::kQqp>},
    TaskEntry{TaskKind::kSquad1, "squad1", {TaskOutputs::kSpans, 2}, 384, 64, open_questions<squad::Version::kSquad1>},
    TaskEntry{TaskKind::kSquad2, "squad2", {TaskOutputs::kSpans, 2}, 384, 64, open_questions<squad::Version::kSquad2>},
    TaskEntry{TaskKind::kRace, "race", {TaskOutputs::kChoice, 4}, 512, 128, race::open_choices},
};

constexpr auto kKinds = [] {
  std::array<TaskKind, kTasks.size()> kinds{};
  for (std::size_t i = 0; i < kTasks.size(); ++i) kinds[i] = kTasks[i].kind;
  return kinds;
}();

const TaskEntry& entry_of(TaskKind kind) { return kTasks.at(static_cast<std::size_t>(kind)); }

}  // namespace

std::span<const TaskKind> all_tasks() { return kKinds; }

std::string_view name_of(TaskKind kind) { return entry_of(kind).name; }

TaskKind task_named(std::string_view name) {
  std::string names;
  for (const TaskEntry& entry : kTasks) {
    if (entry.name == name) return entry.kind;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  throw_user_error("'{}' is none of the tasks {}", name, names);
}

TaskShape shape_of(TaskKind kind) { return entry_of(kind).shape; }

TaskReading default_reading(TaskKind kind) {
  return {.seq_length = entry_of(kind).seq_length, .max_query_length = entry_of(kind).max_query_length};
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
