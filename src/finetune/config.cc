#include "finetune/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files/free_place.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "finetune/search.h"
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

// What the flags leave to the weights, to the paper and to the task.
void fill_in(FinetuneConfig& config, FieldList& fields) {
  set_task_head(config.run.model.config, config.task);
  config.reading.given.seq_length = config.run.model.seq_length;
  const std::int64_t positions = config.run.model.config.max_position_embeddings;
  config.reading.given = config.reading.reading_for(config.task, positions > 0 ? positions : std::numeric_limits<int>::max());
  config.run.model.seq_length = config.reading.given.seq_length;
  const TaskHyperParameters paper =
      paper_hyper_parameters(config.task, config.run.model.model_for(config.run.model.config.vocab_size).parameters());
  if (config.epochs == 0) config.epochs = paper.epochs;
  if (config.run.batch.global_batch_size == 0) config.run.batch.global_batch_size = paper.batch;
  if (config.run.optimizer.learning_rate.peak == 0) config.run.optimizer.learning_rate.peak = paper.learning_rate;
  config.weight_decay_given = fields.find("weight-decay")->given;
  if (!config.weight_decay_given) config.run.optimizer.adamw.weight_decay = paper_weight_decay(config.task);
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

// Checkpoints without a record of their settings are of versions whose only default was that of `train`.
double recorded_weight_decay(const std::filesystem::path& run) {
  const std::optional<TrainConfig> recorded = settings_of(read_checkpoint_info(run));
  return recorded ? recorded->optimizer.adamw.weight_decay : AdamWSettings().weight_decay;
}

// The fields of a model, of which only BERTs are of use.
void add_encoder_fields(FieldList& list, FinetuneConfig& config) {
  add_model_fields(list, config.run.model);
  Field& preset = *list.find("model");
  std::erase_if(preset.known_values,
                [](const std::string& name) { return find_model_preset(name).kind != ModelKind::kBert; });
  preset.help =
      fmt::format("without --load: preset of layers, hidden size and heads: {}", fmt::join(preset.known_values, ", "));
  list.find("model-type")->role = FieldRole::kHiddenFlag;
}

// Whether it is said what the model is.
bool has_shape(FieldList& fields) {
  const std::array names = {"load", "model", "num-layers", "hidden-size"};
  return std::ranges::any_of(names, [&](const char* name) { return fields.find(name)->given; });
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

TaskReading TaskReadingSettings::reading_for(TaskKind task, std::int64_t positions) const {
  const TaskReading usual = default_reading(task);
  TaskReading filled = given;
  if (filled.seq_length == 0) filled.seq_length = std::min(usual.seq_length, positions);
  if (filled.max_query_length == 0) filled.max_query_length = std::min(usual.max_query_length, filled.seq_length / 2);
  if (filled.doc_stride == 0) filled.doc_stride = std::min(usual.doc_stride, filled.seq_length / 4);
  return filled;
}

Faults TaskReadingSettings::faults() const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Faults faults;
  faults.need_between({"max-query-length"}, given.max_query_length, 0, kMost);
  faults.need_between({"doc-stride"}, given.doc_stride, 0, kMost);
  faults.need_between({"max-answer-length"}, given.max_answer_length, 1, kMost);
  faults.need_between({"n-best"}, given.n_best, 1, kMost);
  return faults;
}

void add_task_reading_fields(FieldList& list, TaskReadingSettings& s) {
  list.add("max-query-length", &s.given.max_query_length, "N",
           "SQuAD, RACE: tokens of a question, which loses its end; 0: 64 and 128, and at most half of a sequence");
  list.add("doc-stride", &s.given.doc_stride, "N",
           "SQuAD: tokens that a paragraph's windows share; 0: 128, and at most a quarter of a sequence");
  list.add("max-answer-length", &s.given.max_answer_length, "N", "SQuAD: tokens of an answer");
  list.add("n-best", &s.given.n_best, "N", "SQuAD: beginnings and ends of a window that are put together");
  list.add("null-score-diff-threshold", &s.given.null_score_diff_threshold, "X",
           "SQuAD 2.0: there is no answer where its score is this much higher than the best answer's");
}

FinetuneConfig::FinetuneConfig() {
  run.model.config.set_kind(ModelKind::kBert);
  run.model.preset.clear();
  run.model.seq_length = 0;
  reading.given.doc_stride = 0;
  run.optimizer.learning_rate = {.peak = 0, .minimum = 0, .style = DecayStyle::kLinear};
  run.optimizer.adamw.weight_decay = paper_weight_decay(task);
}

Faults FinetuneConfig::faults() const {
  Faults faults = StepSettings::faults();
  faults.add(TaskReadingSettings::reading.faults());
  OptimizerSettings optimizer_settings = run.optimizer;
  optimizer_settings.train_iters = 1;  // follows from the data
  faults.add(optimizer_settings.faults());
  constexpr std::int64_t kMostCount = std::numeric_limits<std::int32_t>::max();
  faults.need_between({"epochs"}, epochs, 0, kMostCount);
  faults.need_between({"seeds"}, seeds, 1, 1000);
  faults.need_between({"log-interval"}, run.output.log_interval, 1, kMostCount);
  faults.add_if(!(warmup_fraction >= 0 && warmup_fraction <= 1), "{} is {}; it must be between 0 and 1",
                Flag{"lr-warmup-fraction"}, warmup_fraction);
  faults.add(search_faults(*this));
  faults.add_if(ensemble && seeds < 2, "{} averages models of several seeds: {} 5", Flag{"ensemble"}, Flag{"seeds"});
  faults.add_if(!run.batch.rampup_batch_size.empty(), "fine-tuning has batches of one size; leave out {}",
                Flag{"rampup-batch-size"});
  if (run.model.config.kind != ModelKind::kBert) faults.add(needs_bert());
  faults.add_if(run.model.tokenizer.empty(), "the weights have no tokenizer beside them; give {} DIR with BERT's vocabulary",
                Flag{"tokenizer"});
  return faults;
}

FieldList fields_of(FinetuneConfig& c) {
  FieldList list;
  list.group("Task");
  list.add_choice("task", c.task, task_choices(), "what is learned; its files are those of its own site").required =
      true;
  list.add("train-data", &c.train_data, "PATH", "files to train on").required = true;
  list.add("valid-data", &c.valid_data, "PATH",
           "files to score after each epoch; the checkpoint of the highest score is kept as --save/best")
      .required = true;
  list.add("test-data", &c.test_data, "PATH", "files for which that checkpoint then makes predictions");
  list.add("load", &c.run.output.finetune, "DIR",
           "weights to start from, with their shape and tokenizer: a checkpoint of a BERT, or a folder of Hugging "
           "Face's; without it, random weights of --model");
  list.add("epochs", &c.epochs, "N", "times that training goes through the data; 0: as in Megatron-LM's Table 6");
  list.add("seeds", &c.seeds, "N",
           "runs, with --seed and the numbers after it; the median of their scores is reported; with --search 5 unless "
           "given");
  add_search_fields(list, c);
  list.add("ensemble", &c.ensemble, "", "also score the mean of the outputs of all runs");
  add_task_reading_fields(list, c.reading);
  add_encoder_fields(list, c);
  list.add("tokenizer", &c.run.model.tokenizer, "DIR", "BERT's vocabulary, where --load has none");

  list.group("Training");
  list.add("seq-length", &c.run.model.seq_length, "N",
           "tokens of a sequence at most; 0: MNLI and QQP 128, SQuAD 384, RACE 512, or what the model has");
  list.add("micro-batch-size", &c.run.batch.micro_batch_size, "N", "examples computed at a time; memory grows with it");
  list.add("global-batch-size", &c.run.batch.global_batch_size, "N", "examples an update; 0: as in Table 6");
  list.add("lr", &c.run.optimizer.learning_rate.peak, "X", "peak learning rate; 0: as in Table 6, by the size of the model");
  list.add("min-lr", &c.run.optimizer.learning_rate.minimum, "X", "learning rate at the end");
  list.add_choice(
      "lr-decay-style", c.run.optimizer.learning_rate.style,
      {{"cosine", DecayStyle::kCosine}, {"linear", DecayStyle::kLinear}, {"constant", DecayStyle::kConstant}},
      "how the learning rate falls after the warm-up");
  list.add("lr-warmup-fraction", &c.warmup_fraction, "X", "share of the updates with a linear warm-up");
  list.add("weight-decay", &c.run.optimizer.adamw.weight_decay, "X",
           "decoupled weight decay; biases and norms have none; SQuAD's is 0.01 unless given, as RoBERTa's");
  list.add("adam-beta1", &c.run.optimizer.adamw.beta1, "X", "decay of the gradient's running mean");
  list.add("adam-beta2", &c.run.optimizer.adamw.beta2, "X", "decay of the gradient's running square; RoBERTa's is 0.98");
  list.add("adam-eps", &c.run.optimizer.adamw.epsilon, "X", "added to the root of the running square; RoBERTa's is 1e-6");
  list.add("clip-grad", &c.run.optimizer.adamw.clip, "X", "largest norm of all gradients together; 0: no clipping");
  list.add("seed", &c.run.seed, "N", "of the first run: the head's weights, dropout and the order of the data");

  list.group("Precision");
  add_training_precision_fields(list, c.run.backend);
  add_loss_scaling_fields(list, c.run.optimizer.loss_scaling);
  add_training_layout_fields(list, c.run.layout);
  add_pipeline_fields(list, c.run.pipeline);

  list.group("Checkpoints and reports");
  list.add("save", &c.run.output.save, "DIR",
           "where checkpoints, metrics.jsonl and predictions go; the same command goes on with what is there")
      .required = true;
  list.add("save-interval-in-mins", &c.run.output.save_interval_in_mins, "X", "minutes between checkpoints to go on from");
  list.add("log-interval", &c.run.output.log_interval, "N", "updates between lines of the log");
  list.add("json", &c.run.output.json, "FILE", "results as JSON; - is standard output").when_set = [&c] {
    require_writable(c.run.output.json);
  };
  list.add("tensorboard-dir", &c.run.output.tensorboard_dir, "DIR", "curves for TensorBoard, by Megatron-LM's names");
  list.add("peak-tflops", &c.run.output.peak_tflops, "X", "what MFU is counted against, as in train; 0: measured");
  list.add("verbose", &c.run.output.verbose, "", "show all settings at the start");
  add_machine_fields(list, c.run);
  return list;
}

std::string to_toml(FinetuneConfig config) { return to_toml(fields_of(config)); }

FinetuneConfig read_finetune_config(std::span<const std::string> arguments) {
  FinetuneConfig given;
  FieldList given_fields = fields_of(given);
  ConfigFiles files;
  read_fields(given_fields, arguments, files);  // whatever is wrong: where the run starts decides what the rest means
  FinetuneConfig config;
  if (!given.run.output.finetune.empty()) take_encoder(config, given.run.output.finetune);
  FieldList fields = fields_of(config);
  FaultLines lines = read_fields(fields, arguments, files);
  fill_in(config, fields);
  Faults faults = fields.range_faults();
  faults.add(config.faults());
  if (!has_shape(fields)) faults.add(needs_bert());
  add_value_faults(fields, faults, lines);
  throw_if_any(lines);
  config.run.model.config = config.run.model.model_for(config.run.model.vocabulary_size());
  return config;
}

void set_task_head(ModelConfig& model, TaskKind task) {
  const TaskShape shape = shape_of(task);
  model.set_pretraining_head();
  if (shape.outputs == TaskOutputs::kLabels) {
    const std::span<const std::string_view> names = label_names(task);
    model.num_labels = shape.count;
    model.label_names.assign(names.begin(), names.end());
  }
  switch (shape.outputs) {
    case TaskOutputs::kLabels: model.head = ModelHead::kClassification; break;
    case TaskOutputs::kChoice: model.head = ModelHead::kChoice; break;
    case TaskOutputs::kSpans: model.head = ModelHead::kSpans; break;
  }
}

std::int64_t warmup_updates(const FinetuneConfig& config, std::int64_t updates) {
  return std::llround(config.warmup_fraction * static_cast<double>(updates));
}

TrainConfig train_config(const FinetuneConfig& config, const TaskExamples& examples, std::int64_t index) {
  TrainConfig run;
  static_cast<StepSettings&>(run) = config.run;
  static_cast<OptimizerSettings&>(run.optimizer) = config.run.optimizer;
  if (run.model.preset.empty()) run.model.preset = TrainConfig().model.preset;  // a record names one, beside the shape that counts
  run.seed += index;
  // A batch that the data do not fill is one of all of them.
  const std::int64_t batch = std::min(config.run.batch.global_batch_size, examples.count());
  run.batch.samples_together = examples.sequences_each;
  run.batch.global_batch_size = batch * run.batch.samples_together;
  run.batch.micro_batch_size = std::min(config.run.batch.micro_batch_size * run.batch.samples_together, run.largest_share());
  const std::int64_t epoch = std::max(examples.count() / batch, std::int64_t{1});
  run.train_iters = epoch * config.epochs;
  run.optimizer.learning_rate.warmup = warmup_updates(config, run.train_iters);
  run.optimizer.learning_rate.decay = run.train_iters;
  run.output.eval_interval = epoch;
  run.output.save_best = true;
  run.output.keep_last = 1;
  run.output.save_interval_in_mins = config.run.output.save_interval_in_mins;
  run.output.log_interval = config.run.output.log_interval;
  run.output.peak_tflops = config.run.output.peak_tflops;
  run.output.verbose = config.run.output.verbose;
  const std::string of_seed = config.seeds == 1 && !config.search ? "" : fmt::format("seed-{}", run.seed);
  run.output.save = of_seed.empty() ? config.run.output.save : config.run.output.save / of_seed;
  if (!config.run.output.tensorboard_dir.empty()) {
    run.output.tensorboard_dir = of_seed.empty() ? config.run.output.tensorboard_dir : config.run.output.tensorboard_dir / of_seed;
  }
  if (holds_run(run.output.save)) {
    run.output.load = run.output.save;
    if (!config.weight_decay_given) run.optimizer.adamw.weight_decay = recorded_weight_decay(run.output.load);
  } else {
    run.output.finetune = config.run.output.finetune;
  }
  return run;
}

}  // namespace teratron
