// teratron eval TASK: scores of a fine-tuned BERT.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/host/monotonic_clock.h"
#include "cli/commands.h"
#include "cli/eval/scoring.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "finetune/config.h"
#include "finetune/outputs.h"
#include "finetune/task_head.h"
#include "runtime/loaded_model.h"
#include "runtime/ranks.h"
#include "tasks/tag/sentences.h"
#include "tasks/task_entry.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

struct EvalTaskOptions : EvaluationOptions, TaskReadingSettings {
  TaskKind task = {};
  std::vector<std::filesystem::path> data;
  std::filesystem::path predictions;
  bool overwrite = false;
  std::set<std::string> named;  // flags of the reading that were given

  EvalTaskOptions() { given.doc_stride = 0; }
  Faults faults() const {
    Faults faults = EvaluationOptions::faults();
    faults.add(TaskReadingSettings::faults());
    add_output_faults(faults, "--predictions", predictions, json);
    faults.need_between({"seq-length"}, given.seq_length, 0, std::numeric_limits<std::int32_t>::max());
    return faults;
  }
};

FieldList fields_of(EvalTaskOptions& o) {
  FieldList list;
  list.add("load", &o.load, "DIR",
           "a checkpoint of `teratron finetune`, or a Hugging Face folder of such a model; embed: any BERT")
      .required = true;
  list.add("data", &o.data, "PATH", "files of the task's site, as for `teratron score`; classify, embed and tag: yours")
      .required = true;
  list.add("predictions", &o.predictions, "OUT", "write the model's answers, in the format of the task's site")
      .writes();
  add_overwrite_field(list, o.overwrite);
  list.add("seq-length", &o.given.seq_length, "N", "tokens of a sequence at most; 0: as the model was fine-tuned");
  FieldList reading;
  add_task_reading_fields(reading, o);
  add_task_reading_fields(list, o);
  for (const Field& field : reading)
    list.find(field.name)->when_set = [&o, flag = field.name] { o.named.insert(flag); };
  add_evaluation_fields(list, o, "examples");
  return list;
}

// Data that all ranks of a process share.
struct EvalTaskJob {
  const EvalTaskOptions& options;
  WeightSource source;
  std::unique_ptr<TaskSet> set;
};

TaskReading reading_of(TaskKind task, TaskReadingSettings settings, const WeightSource& source) {
  if (settings.given.seq_length == 0 && !source.is_hugging_face) {
    const std::optional<TrainConfig> trained = settings_of(read_checkpoint_info(source.folder));
    if (trained) settings.given.seq_length = trained->model.seq_length;
  }
  const std::int64_t positions = source.model.max_position_embeddings;
  const TaskReading reading = settings.reading_for(task, positions);
  if (reading.seq_length > positions) {
    throw_user_error("--seq-length {} is more than the {} positions of the model in '{}'", reading.seq_length,
                     positions, source.folder.string());
  }
  return reading;
}

// Reads as the run did, where no flag says otherwise. Columns of words are numbers in CoNLL files and keys elsewhere:
// those of a run do not fit files of the other form.
void take_run_reading(const RunOrigin& run, const EvalTaskOptions& options, TaskReadingSettings& settings) {
  if (run.task != name_of(options.task)) return;
  std::map<std::string, std::string> reading = run.reading;
  if (options.task == TaskKind::kTag) {
    const bool are_numbers = tag::is_conll_file(options.data.front());
    std::erase_if(reading, [&](const auto& flag) {
      const bool is_number = flag.second.find_first_not_of("0123456789") == std::string::npos;
      return flag.first.ends_with("-column") && !flag.second.empty() && is_number != are_numbers;
    });
  }
  take_reading(reading, options.named, settings);
}

void report_scores(const EvalTaskJob& job, const TaskOutputValues& outputs, double seconds,
                   const std::vector<std::int64_t>& peaks) {
  const EvalTaskOptions& options = job.options;
  const std::int64_t tokens = std::ssize(job.set->examples().ids);
  nlohmann::ordered_json json = {{"task", name_of(job.options.task)}, {"examples", job.set->examples().count()}};
  std::string text = job.set->notes() + "\n";
  if (job.set->has_labels()) {
    const std::vector<TaskScore> scores = job.set->scores(outputs);
    json.update(json_of(scores));
    text += fmt::format("{}: {}\n", name_of(job.options.task), text_of(scores));
  } else {
    text += "the set has no labels to score by\n";
  }
  if (!options.predictions.empty()) {
    job.set->write_predictions(options.predictions, outputs);
    text += fmt::format("predictions: {}\n", options.predictions.string());
  }
  text += fmt::format("{} in {}\n", counted(tokens, "token"), readable_duration(seconds));
  json["tokens_per_second"] = static_cast<double>(tokens) / seconds;
  json["peak_memory_bytes"] = peaks;
  report_beside(options.predictions, options.json, text, json);
}

void run_rank(const EvalTaskJob& job, const Rank& rank) {
  const TaskExamples& examples = job.set->examples();
  const ExecutorOptions options{.purpose = Purpose::kEvaluation,
                                .batch = std::min(job.options.batch, examples.count()) * examples.sequences_each,
                                .tokens = examples.longest(),
                                .logits_chunk = 1};
  const LoadedEncoder encoder = load_encoder(job.source, options, job.options.backend, rank, kEvaluationBatch);
  const double start = monotonic_seconds();
  const TaskOutputValues outputs =
      outputs_of(*encoder.model, encoder.model->model(), examples, show_share("answering", rank.is_first()));
  const double seconds = monotonic_seconds() - start;
  const std::vector<std::int64_t> peaks = rank.peak_memory(*encoder.backend);
  if (rank.is_first()) report_scores(job, outputs, seconds, peaks);
}

void run(const EvalTaskOptions& options) {
  const TaskKind task = options.task;
  const RankLauncher launcher(options.layout, options.backend.kind);
  require_free(std::array{options.predictions}, options.overwrite);
  require_writable(options.predictions);
  const std::optional<OutputLock> lock = launcher.lock(options.predictions);
  TaskReadingSettings settings = options;
  if (has_labels_of_files(task)) settings.given.labels = labels_of(find_weights(options.load), task);
  ModelConfig needed;
  set_task_head(needed, task, settings.given);
  WeightSource source = find_encoder(options.load, options.layout, WeightUse::kEvalTask, name_of(task), needed);
  if (const std::string note = note_of_unnamed_labels(source, needed); launcher.is_first_process() && !note.empty()) {
    fmt::print(stderr, "{}\n", note);
  }
  source.model.label_names = needed.label_names;  // puts its outputs in the order of the task's labels
  if (needed.head == ModelHead::kVectors) {
    needed.vectors.pooling = pooling_for(settings, options.load);
    needed.vectors.tokens = source.model.vectors.tokens;
    source.model.head = needed.head;
    source.model.vectors = needed.vectors;
  }
  take_run_reading(source.run, options, settings);
  const Tokenizer tokenizer = load_tokenizer_for(source.folder, source.model, options.tokenizer);
  auto set = open_task(task, options.data, tokenizer, reading_of(task, settings, source), /*training=*/false);
  const EvalTaskJob job{.options = options, .source = std::move(source), .set = std::move(set)};
  launcher.run(options_text(options), [&](const Rank& rank) { run_rank(job, rank); });
}

}  // namespace

std::vector<Command> eval_task_commands() {
  std::vector<Command> commands;
  for (const TaskKind task : all_tasks()) {
    const auto options = [task] {
      EvalTaskOptions made;
      made.task = task;
      const TaskReading usual = default_reading(task);
      made.given.text_column = usual.text_column;
      made.given.label_column = usual.label_column;
      return made;
    };
    commands.push_back(make_command<EvalTaskOptions>(
        fmt::format("eval {}", name_of(task)),
        fmt::format("measures how well a fine-tuned BERT {}", entry_of(task).ability), run, options));
  }
  return commands;
}

}  // namespace teratron
