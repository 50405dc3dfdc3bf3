#include "finetune/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "finetune/search.h"
#include "finetune/task_head.h"
#include "model/family.h"
#include "model/label_names.h"
#include "model/negatives.h"
#include "model/presets.h"
#include "options/output.h"
#include "options/reading.h"
#include "runtime/weight_use.h"
#include "tasks/task_entry.h"
#include "train/config/resume_rules.h"

namespace teratron {
namespace {

Fault needs_bert() {
  return Fault::of("fine-tuning needs a BERT: its weights with {} DIR, or random ones with {} bert-tiny or another",
                   Flag{"load"}, Flag{"model"});
}

std::vector<std::pair<std::string, TaskKind>> task_choices() {
  std::vector<std::pair<std::string, TaskKind>> choices;
  for (const TaskKind task : all_tasks()) choices.emplace_back(name_of(task), task);
  return choices;
}

// UserError: two labels are alike (of --label-names), or differ in capitals, spaces or hyphens alone, which label names
// of models do not (label_names.h).
void require_different(const std::vector<std::string>& labels) {
  for (auto label = labels.begin(); label != labels.end(); ++label) {
    const auto same = std::find_if(labels.begin(), label, [&](auto& other) { return is_same_label(other, *label); });
    if (same == label) continue;
    if (*same == *label)
      throw_user_error("{} has '{}' twice; each label has a name of its own", Flag{"label-names"}, *label);
    throw_user_error(
        "--train-data has the labels '{}' and '{}', which differ in capitals, spaces or hyphens alone, as labels "
        "of a model (id2label) never do; write them alike, or as different words",
        *same, *label);
  }
}

bool learns_vectors(TaskKind task) { return shape_of(task).outputs == TaskOutputs::kVectors; }

// Columns that are not given are those of the task.
void take_usual_columns(TaskKind task, TaskReading& reading, FieldList& fields) {
  const TaskReading usual = default_reading(task);
  for (std::string TaskReading::*column : {&TaskReading::text_column, &TaskReading::label_column}) {
    if (!fields.field_of(reading.*column).given) reading.*column = usual.*column;
  }
}

// UserError: a pipe, which gives its text once.
void require_files(std::span<const std::filesystem::path> files) {
  const auto pipe = std::ranges::find_if(files, is_stream);
  if (pipe == files.end()) return;
  throw_user_error("--train-data {} is a pipe, and is read twice: for its labels, then for its examples; write a file",
                   pipe->string());
}

// Fills in values that follow from the weights, the paper and the task.
void fill_in(FinetuneConfig& config, FieldList& fields) {
  TrainConfig& run = config.run;
  TaskReading& reading = config.reading.given;
  config.given_reading = given_reading(config.reading, fields);
  take_usual_columns(config.task, reading, fields);
  if (entry_of(config.task).labels_in_files != nullptr && !config.train_data.empty()) {
    require_files(config.train_data);
    reading.labels = labels_in_files(config.task, config.train_data, reading);
    require_different(reading.labels.names);
  }
  set_task_head(run.model.config, config.task, reading);
  reading.seq_length = run.model.seq_length;
  const std::int64_t positions = run.model.config.max_position_embeddings;
  reading = config.reading.reading_for(config.task, positions > 0 ? positions : std::numeric_limits<int>::max());
  run.model.seq_length = reading.seq_length;
  if (learns_vectors(config.task)) {
    run.model.config.vectors.pooling = pooling_for(config.reading, config.load);
    run.model.config.vectors.tokens = reading.seq_length;
  }
  const ModelConfig model = run.model.model_for(run.model.config.family().usual_vocabulary);
  const std::int64_t parameters = model.faults().empty() ? model.parameters() : 0;  // faults are reported later
  const TaskHyperParameters paper = paper_hyper_parameters(config.task, parameters);
  if (config.epochs == 0) config.epochs = paper.epochs;
  if (run.batch.global_batch_size == 0) run.batch.global_batch_size = paper.batch;
  config.micro_batch_is_batch = ranks_negatives(run.model.config) && !fields.field_of(run.batch.micro_batch_size).given;
  if (config.micro_batch_is_batch) run.batch.micro_batch_size = run.batch.global_batch_size;
  if (run.optimizer.learning_rate.peak == 0) run.optimizer.learning_rate.peak = paper.learning_rate;
  AdamWSettings& adamw = run.optimizer.adamw;
  config.weight_decay_given = fields.field_of(adamw.weight_decay).given;
  if (!config.weight_decay_given) adamw.weight_decay = paper_weight_decay(config.task);
  fill_in_search(config, fields);
}

void take_encoder(FinetuneConfig& config, const std::filesystem::path& path) {
  const WeightSource source = find_weights(path);
  require_usable(WeightUse::kFinetune, source);
  config.run.model.config = source.model;
  if (source.has_tokenizer) config.run.model.tokenizer = source.folder;
}

bool holds_run(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / kTrackerFile, error);
}

// Weight decay of a run. Old checkpoints do not record it; their versions had only the default of `train`.
double recorded_weight_decay(const std::filesystem::path& run) {
  const std::optional<TrainConfig> recorded = settings_of(read_checkpoint_info(run));
  return recorded ? recorded->optimizer.adamw.weight_decay : AdamWSettings().weight_decay;
}

// Adds the fields of a model, restricted to BERTs.
void add_encoder_fields(FieldList& list, ModelSettings& model) {
  add_model_fields(list, model);
  Field& preset = list.field_of(model.preset);
  std::erase_if(preset.known_values,
                [](const std::string& name) { return find_model_preset(name).kind != encoder_family().kind; });
  preset.help =
      fmt::format("without --load: preset of layers, hidden size and heads: {}", fmt::join(preset.known_values, ", "));
  list.field_of(model.config.kind).role = FieldRole::kHiddenFlag;
  add_tokenizer_field(list, model);
}

void add_task_fields(FieldList& list, FinetuneConfig& c) {
  list.group("Task");
  list.add_choice("task", c.task, task_choices(),
                  "task to learn, from the files of its own site; from your .csv, .tsv, .jsonl or .parquet, classify: "
                  "any labels or numbers of texts, embed: vectors of texts; from CoNLL files, .jsonl or .parquet, tag: "
                  "labels of words")
      .required = true;
  list.add("train-data", &c.train_data, "PATH", "files to train on").required = true;
  list.add("valid-data", &c.valid_data, "PATH",
           "files to score after each epoch; the checkpoint of the highest score is kept as --save/best")
      .required = true;
  list.add("test-data", &c.test_data, "PATH", "files for which that checkpoint then makes predictions");
  list.add("load", &c.load, "DIR",
           "weights to start from, with their shape and tokenizer: a checkpoint of a BERT, or a folder of Hugging "
           "Face's; without it, random weights of --model");
  list.add_choice("labels", c.reading.given.label_kind,
                  {{"auto", LabelKind::kAuto}, {"names", LabelKind::kNames}, {"numbers", LabelKind::kNumbers}},
                  "classify: names, one of which each text has, or numbers, learned by their squared error; auto: "
                  "numbers where all labels are, and some have a fraction");
  list.add("epochs", &c.epochs, "N",
           "passes over the training data; 0: as in Megatron-LM's Table 6; classify, embed and tag 3");
  list.add("lr-warmup-fraction", &c.warmup_fraction, "X", "share of the updates with a linear warm-up");
  list.add("seeds", &c.seeds, "N",
           "runs, with --seed and the numbers after it; the median of their scores is reported; with --search 5 unless "
           "given");
  add_search_fields(list, c);
  list.add("ensemble", &c.ensemble, "", "also score the mean of the outputs of all runs");
  add_task_reading_fields(list, c.reading);
}

// Removes the trainer's fields whose values follow from the task and its data.
void remove_decided_fields(FieldList& list, TrainConfig& run) {
  LearningRateSchedule& rate = run.optimizer.learning_rate;
  OutputSettings& output = run.output;
  list.remove(run.train_iters, rate.decay, rate.warmup, run.batch.rampup_batch_size);
  list.remove(output.load, output.iteration, output.finetune, output.override_schedule);
  list.remove(output.eval_interval, output.eval_iters, output.save_best, output.early_stop);
  list.remove(output.sample_prompts, output.sample_tokens);
}

// Explains the trainer's fields by examples and tasks: instead of the trainer's words, or after them.
void explain_by_task(FieldList& list, TrainConfig& run) {
  const auto instead = [&](const auto& value, const char* text) { list.field_of(value).help = text; };
  const auto after = [&](const auto& value, const char* text) { list.field_of(value).help += text; };
  instead(run.model.tokenizer, "BERT's vocabulary, where --load has none");
  instead(run.model.seq_length,
          "tokens of a sequence at most; 0: MNLI, QQP, classify, embed and tag 128, SQuAD 384, RACE 512, or what the "
          "model has");
  instead(run.batch.micro_batch_size,
          "examples computed at a time; memory grows with it. embed: pairs that are one another's negatives, in every "
          "layout; --global-batch-size unless given");
  instead(run.batch.global_batch_size, "examples an update; 0: as in Table 6; classify, embed and tag 32");
  instead(run.seed, "seed of the first run: the head's weights, dropout and the order of the data");
  instead(run.output.save,
          "folder of checkpoints, metrics.jsonl and predictions; the same command resumes a run there");
  after(run.optimizer.learning_rate.peak,
        "; 0: as in Table 6, by the size of the model; classify and embed 2e-5, tag 5e-5");
  after(run.optimizer.adamw.weight_decay, "; that of SQuAD, classify, embed and tag is 0.01 unless given");
  after(run.optimizer.adamw.beta2, "; RoBERTa's is 0.98");
  after(run.optimizer.adamw.epsilon, "; RoBERTa's is 1e-6");
}

// Whether the user gave the model's shape.
bool has_shape(FieldList& fields, const FinetuneConfig& config) {
  const ModelSettings& model = config.run.model;
  const auto given = [&](const auto& value) { return fields.field_of(value).given; };
  return given(config.load) || given(model.preset) || given(model.config.num_layers) || given(model.config.hidden_size);
}

// Checks that all micro-batches of an update, whose examples are one another's negatives, are whole, and that copies of
// the model have as many each. All numbers count examples. UserError: they are not.
void require_whole_groups(std::int64_t batch, std::int64_t micro_batch, std::int64_t copies) {
  const std::int64_t group = micro_batch * copies;
  if (batch % group == 0) return;
  throw_user_error(
      "an update has {0}, in micro-batches of {1} that are one another's negatives{2}, so it must have a "
      "multiple of {3}: --global-batch-size {4}, or another --micro-batch-size",
      counted(batch, "example"), micro_batch, copies > 1 ? fmt::format(", on {} copies of the model", copies) : "",
      group, std::max(batch / group, std::int64_t{1}) * group);
}

}  // namespace

TaskHyperParameters paper_hyper_parameters(TaskKind task, std::int64_t model_parameters) {
  const auto distance = [&](double size) { return std::abs(std::log(static_cast<double>(model_parameters) / size)); };
  const auto nearest = std::ranges::min_element(kPaperModels, {}, distance);
  const auto model = static_cast<std::size_t>(nearest - kPaperModels.begin());
  const PaperFineTuning& row = entry_of(task).paper;
  return {.batch = row.batch[model], .learning_rate = row.learning_rate[model], .epochs = row.epochs};
}

double paper_weight_decay(TaskKind task) { return entry_of(task).paper.weight_decay; }

FinetuneConfig::FinetuneConfig() {
  run.model.config.set_kind(encoder_family().kind);
  run.model.preset.clear();
  run.model.seq_length = 0;
  reading.given.doc_stride = 0;
  run.optimizer.learning_rate = {.peak = 0, .minimum = 0, .style = DecayStyle::kLinear};
  run.optimizer.adamw.weight_decay = paper_weight_decay(task);
  run.output.save_best = true;
  run.output.keep_last = 1;
}

Faults FinetuneConfig::faults() const {
  Faults faults = run.StepSettings::faults();
  faults.add(run.layout.execution_faults());
  faults.add(reading.faults());
  faults.add(
      run.optimizer.faults(std::numeric_limits<std::uint32_t>::max()));  // the number of updates follows from the data
  faults.need_between({"seed"}, run.seed, 0);
  OutputSettings output = run.output;
  output.eval_interval = 1;  // follows from the data, too
  faults.add(output.faults());
  faults.add(run.failures.faults(output.save, run.config_file));
  faults.add(optimizer_backend_faults(run));
  constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
  faults.need_between({"epochs"}, epochs, 0, kMostCount);
  faults.need_between({"seeds"}, seeds, 1, 1000);
  constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();
  faults.add_if(seeds > 1 && run.seed > kMostSeed - (seeds - 1),
                "{} is {}; {} with the numbers after it must be at most {}", Flag{"seed"}, run.seed,
                counted(seeds, "seed"), kMostSeed);
  faults.add_if(!(warmup_fraction >= 0 && warmup_fraction <= 1), "{} is {}; it must be between 0 and 1",
                Flag{"lr-warmup-fraction"}, warmup_fraction);
  faults.add(search_faults(*this));
  faults.add_if(is_standard_stream(run.output.trace) && (seeds > 1 || search),
                "{} - is one output, and each of several runs has a trace; name a file", Flag{"trace"});
  faults.add_if(ensemble && seeds < 2, "{} averages models of several seeds: {} 5", Flag{"ensemble"}, Flag{"seeds"});
  faults.add_if(ensemble && learns_vectors(task), "{} averages outputs, and vectors of several models have no mean",
                Flag{"ensemble"});
  faults.add_if(ranks_negatives(run.model.config) && run.batch.micro_batch_size == 1,
                "{} is 1; a pair alone has no others to tell it from, so take as many as memory allows",
                Flag{"micro-batch-size"});
  if (run.model.config.family().continues_text) faults.add(needs_bert());
  faults.add_if(run.model.tokenizer.empty(),
                "the weights have no tokenizer beside them; give {} DIR with BERT's vocabulary", Flag{"tokenizer"});
  return faults;
}

FieldList fields_of(FinetuneConfig& c) {
  FieldList list;
  add_task_fields(list, c);
  add_encoder_fields(list, c.run.model);
  add_update_fields(list, c.run);
  add_output_fields(list, c.run.output);
  add_watchdog_field(list, c.run.failures);
  add_machine_fields(list, c.run);
  remove_decided_fields(list, c.run);
  explain_by_task(list, c.run);
  list.field_of(c.run.output.save).required = true;
  return list;
}

std::string to_toml(FinetuneConfig config) { return to_toml(fields_of(config)); }

FinetuneConfig read_finetune_config(std::span<const std::string> arguments) {
  FinetuneConfig given;
  FieldList given_fields = fields_of(given);
  ConfigFiles files;
  read_fields(given_fields, arguments, files);  // first reading, faults ignored: --load decides other defaults
  FinetuneConfig config;
  if (!given.load.empty()) take_encoder(config, given.load);
  FieldList fields = fields_of(config);
  FaultLines lines = read_fields(fields, arguments, files);
  fill_in(config, fields);
  Faults faults = fields.range_faults();
  faults.add(config.faults());
  if (!has_shape(fields, config)) faults.add(needs_bert());
  add_value_faults(fields, faults, lines);
  throw_if_any(lines);
  config.run.model.config = config.run.model.model_for(config.run.model.vocabulary_size());
  return config;
}

std::int64_t warmup_updates(const FinetuneConfig& config, std::int64_t updates) {
  return std::llround(config.warmup_fraction * static_cast<double>(updates));
}

TrainConfig train_config(const FinetuneConfig& config, const TaskExamples& examples, std::int64_t index) {
  TrainConfig run = config.run;
  OutputSettings& output = run.output;
  if (run.model.preset.empty())
    run.model.preset = TrainConfig().model.preset;  // a record has a preset beside the shape
  run.seed += index;
  // A batch has at most all examples.
  const std::int64_t batch = std::min(run.batch.global_batch_size, examples.count());
  const std::int64_t together = run.batch.samples_together = examples.sequences_each;
  run.batch.global_batch_size = batch * together;
  if (ranks_negatives(run.model.config)) {
    run.batch.micro_batch_size = std::min(run.batch.micro_batch_size, batch);
    if (batch == 1) throw_user_error("there is one pair to train on, which has no others to tell it from; give more");
    require_whole_groups(batch, run.batch.micro_batch_size, std::max<std::int64_t>(run.layout.data_parallel, 1));
  }
  run.batch.micro_batch_size = std::min(run.batch.micro_batch_size * together, run.largest_share());
  const std::int64_t epoch = std::max(examples.count() / batch, std::int64_t{1});
  run.train_iters = epoch * config.epochs;
  run.optimizer.learning_rate.warmup = warmup_updates(config, run.train_iters);
  run.optimizer.learning_rate.decay = run.train_iters;
  output.eval_interval = epoch;
  if (config.seeds > 1 || config.search) {
    name_outputs(output, fmt::format("seed-{}", run.seed));
  }
  if (holds_run(output.save)) {
    output.load = output.save;
    if (!config.weight_decay_given) run.optimizer.adamw.weight_decay = recorded_weight_decay(output.load);
  } else {
    output.finetune = config.load;
  }
  const std::vector<std::string> faults = run.optimizer.faults(run.train_iters).texts();
  if (!faults.empty()) throw_user_error("{} updates of {} epochs: {}", run.train_iters, config.epochs, faults.front());
  return run;
}

}  // namespace teratron
