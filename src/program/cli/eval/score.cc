// teratron score TASK: official scores of predictions for a task's files.
#include "cli/commands.h"
#include "cli/report.h"
#include "finetune/config.h"
#include "tasks/task_entry.h"

namespace teratron {
namespace {

struct ScoreOptions {
  TaskKind task = {};
  std::vector<std::filesystem::path> data;
  std::filesystem::path predictions, json;
  TaskReading reading;
};

FieldList fields_of(ScoreOptions& o) {
  const TaskScoring& scoring = entry_of(o.task).scoring;
  FieldList list;
  list.add("data", &o.data, "PATH", std::string(scoring.data)).required = true;
  list.add("predictions", &o.predictions, "FILE", std::string(scoring.predictions)).required = true;
  if (entry_of(o.task).labels_in_files != nullptr) add_label_fields(list, o.reading);
  add_json_field(list, o.json);
  return list;
}

void run(const ScoreOptions& options) {
  const ScoreReport scores = entry_of(options.task).scoring.score(options.data, options.predictions, options.reading);
  report(options.json, scores.text, scores.json);
}

}  // namespace

std::vector<Command> score_commands() {
  std::vector<Command> commands;
  for (const TaskKind task : all_tasks()) {
    commands.push_back(
        make_command<ScoreOptions>(fmt::format("score {}", name_of(task)), entry_of(task).scoring.summary, run,
                                   [task] { return ScoreOptions{.task = task, .reading = default_reading(task)}; }));
  }
  return commands;
}

}  // namespace teratron
