#include "train/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/output.h"

namespace teratron {
namespace {

std::string preset_names() {
  std::vector<std::string_view> names;
  for (const ModelPreset& preset : model_presets()) names.push_back(preset.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void apply_preset(TrainConfig& config) {
  const ModelPreset& preset = find_model_preset(config.preset);
  config.model.num_layers = preset.num_layers;
  config.model.hidden_size = preset.hidden_size;
  config.model.num_attention_heads = preset.num_attention_heads;
}

void add_model_fields(FieldList& list, TrainConfig& c) {
  list.group("Model");
  list.add("model", &c.preset, "NAME", "preset of layers, hidden size and heads: " + preset_names()).when_set = [&c] {
    apply_preset(c);
  };
  list.add("num-layers", &c.model.num_layers, "N", "transformer layers");
  list.add("hidden-size", &c.model.hidden_size, "N", "width of the residual stream");
  list.add("num-attention-heads", &c.model.num_attention_heads, "N", "attention heads; divides the hidden size");
  list.add("vocab-size", &c.model.vocab_size, "N", "tokens of the vocabulary; 0: the tokenizer's");
  list.add("max-position-embeddings", &c.model.max_position_embeddings, "N", "longest sequence; 0: --seq-length");
  list.add("make-vocab-size-divisible-by", &c.model.make_vocab_size_divisible_by, "N",
           "the embedding is padded to a multiple of this");
  list.add("layernorm-epsilon", &c.model.layernorm_epsilon, "X", "added to the variance in layer norms");
  list.add("init-method-std", &c.model.init_method_std, "X", "standard deviation of the initial weights");
  list.add("hidden-dropout", &c.model.hidden_dropout, "P", "dropout after the embedding and before residual adds");
  list.add("attention-dropout", &c.model.attention_dropout, "P", "dropout of attention probabilities");
}

void add_training_fields(FieldList& list, TrainConfig& c) {
  list.group("Training");
  list.add("seq-length", &c.seq_length, "N", "tokens a sample");
  list.add("micro-batch-size", &c.micro_batch_size, "N", "samples computed at a time; memory grows with it");
  list.add("global-batch-size", &c.global_batch_size, "N", "samples an update; 0: one micro-batch a copy");
  list.add("rampup-batch-size", &c.rampup_batch_size, "START INCREMENT SAMPLES",
           "begin with START samples an update and add INCREMENT after each equal part of SAMPLES samples, until "
           "--global-batch-size");
  list.add("train-iters", &c.train_iters, "N", "updates in all");
  list.add("lr", &c.learning_rate.peak, "X", "peak learning rate");
  list.add("min-lr", &c.learning_rate.minimum, "X", "learning rate at the end of the decay");
  list.add_choice(
      "lr-decay-style", c.learning_rate.style,
      {{"cosine", DecayStyle::kCosine}, {"linear", DecayStyle::kLinear}, {"constant", DecayStyle::kConstant}},
      "how the learning rate falls after the warm-up");
  list.add("lr-decay-iters", &c.learning_rate.decay, "N", "updates until --min-lr; 0: --train-iters");
  list.add("lr-warmup-iters", &c.learning_rate.warmup, "N", "updates of linear warm-up");
  list.add("weight-decay", &c.optimizer.weight_decay, "X", "decoupled weight decay; biases and norms have none");
  list.add("clip-grad", &c.optimizer.clip, "X", "largest norm of all gradients together; 0: no clipping");
  list.add("adam-beta1", &c.optimizer.beta1, "X", "decay of the gradient's running mean");
  list.add("adam-beta2", &c.optimizer.beta2, "X", "decay of the gradient's running square");
  list.add("adam-eps", &c.optimizer.epsilon, "X", "added to the root of the running square");
  list.add("seed", &c.seed, "N", "of initial weights, dropout and the order of the data");
}

void add_layout_fields(FieldList& list, TrainConfig& c) {
  list.group("Layout");
  add_model_parallel_fields(list, c);
  add_data_parallel_field(list, c, "copies of the model, each with its share of the batch");
  list.add("sequence-parallel", &c.sequence_parallel, "",
           "norms, dropout and residuals are split over the tensor-parallel ranks too, by rows");
  list.add("use-distributed-optimizer", &c.distributed_optimizer, "",
           "each copy of the model keeps its share of the optimizer's state");
  list.add_choice("recompute-granularity", c.recompute,
                  {{"none", Recompute::kNone}, {"selective", Recompute::kSelective}, {"full", Recompute::kFull}},
                  "activations made again in the backward pass: of attention, or of whole layers");
}

void add_pipeline_fields(FieldList& list, TrainConfig& c) {
  using pipeline::ScheduleKind;
  list.group("Pipeline");
  list.add_choice("schedule", c.pipeline_schedule,
                  {{"auto", std::nullopt},
                   {"gpipe", ScheduleKind::kGpipe},
                   {"1f1b", ScheduleKind::k1F1B},
                   {"interleaved", ScheduleKind::kInterleaved},
                   {"terapipe", ScheduleKind::kTeraPipe},
                   {"seq1f1b", ScheduleKind::kSeq1F1B}},
                  "in what order stages work; auto: seq1f1b with --token-slices, else 1f1b");
  list.add("virtual-stages", &c.virtual_stages, "V", "cells of layers that a stage holds, for interleaved");
  list.add("pipeline-layout", &c.pipeline_layout, "L,L,..",
           "layers of each cell, in order; as many in each if not given");
  list.add("token-slices", &c.token_slices, "L,L,..|uniform:N|auto",
           "cut sequences into slices of so many tokens, into N slices, or as --profile says is best");
  list.add("defer-weight-gradients", &c.defer_weight_gradients, "",
           "make weight gradients where a stage would wait, in the memory that the schedule takes anyway");
  list.add("profile", &c.profile, "FILE",
           "what slices cost here, for --token-slices auto (teratron profile); measured and written there if it does "
           "not exist. Without it: in the user's cache");
}

void add_precision_fields(FieldList& list, TrainConfig& c) {
  list.group("Precision");
  add_precision_fields(list, c, "weights and activations in bf16; master weights and gradients in fp32",
                       "the same in fp16, with a loss scale");
  list.add("loss-scale", &c.loss_scaling.fixed, "X", "constant loss scale of fp16; 0: dynamic");
  list.add("initial-loss-scale", &c.loss_scaling.initial, "X", "where the dynamic loss scale starts");
  list.add("min-loss-scale", &c.loss_scaling.minimum, "X", "where it stops falling");
  list.add("loss-scale-window", &c.loss_scaling.window, "N", "updates without overflow before it doubles");
  list.add("hysteresis", &c.loss_scaling.hysteresis, "N", "overflows before it halves");
}

void add_data_and_output_fields(FieldList& list, TrainConfig& c) {
  list.group("Data");
  list.add("data-path", &c.data_path, "PREFIX", "tokens, as PREFIX.bin and PREFIX.idx (teratron data tokenize)")
      .required = true;
  list.add("tokenizer", &c.tokenizer, "DIR", "tokenizer the data was made with; it is saved with the model");
  add_split_fields(list, c);

  list.group("Checkpoints and reports");
  list.add("save", &c.save, "DIR", "where checkpoints, metrics.jsonl and config.toml go");
  list.add("load", &c.load, "DIR", "checkpoint to go on from");
  list.add("save-interval", &c.save_interval, "N", "updates between checkpoints; 0: one at the end");
  list.add("keep-last", &c.keep_last, "N", "checkpoints kept, older ones are deleted; 0: all");
  list.add("log-interval", &c.log_interval, "N", "updates between lines of the log");
  list.add("eval-interval", &c.eval_interval, "N", "updates between validations; 0: one at the end");
  list.add("eval-iters", &c.eval_iters, "N", "batches a validation");
  list.add("json", &c.json, "FILE", "results as JSON; - is standard output");
  list.add("trace", &c.trace, "FILE",
           "what every stage did when in the last iterations, for Perfetto or chrome://tracing");

  list.group("Machine");
  add_backend_fields(list, c);
  add_threads_field(list, c);
  list.add("logits-chunk", &c.logits_chunk, "N", "rows of logits held in memory at a time");
  list.add("config", &c.config_file, "FILE", "TOML file of these flags, written with underscores; flags override it")
      .role = FieldRole::kConfigFile;
}

}  // namespace

TrainConfig::TrainConfig() {
  model.vocab_size = 0;
  model.max_position_embeddings = 0;
  learning_rate.minimum = 1e-5;
}

BatchSchedule TrainConfig::batches() const {
  if (rampup_batch_size.size() != 3) return BatchSchedule(largest_batch());
  return BatchSchedule(
      largest_batch(),
      BatchRamp{.start = rampup_batch_size[0], .increment = rampup_batch_size[1], .samples = rampup_batch_size[2]});
}

LearningRateSchedule TrainConfig::schedule() const {
  LearningRateSchedule schedule = learning_rate;
  if (schedule.decay == 0) schedule.decay = train_iters;
  return schedule;
}

ModelConfig TrainConfig::model_for(std::int64_t data_vocab_size) const {
  ModelConfig filled = model;
  if (filled.vocab_size == 0) filled.vocab_size = data_vocab_size;
  if (filled.max_position_embeddings == 0) filled.max_position_embeddings = seq_length;
  return filled;
}

FieldList fields_of(TrainConfig& config) {
  FieldList list;
  add_model_fields(list, config);
  add_training_fields(list, config);
  add_precision_fields(list, config);
  add_layout_fields(list, config);
  add_pipeline_fields(list, config);
  add_data_and_output_fields(list, config);
  return list;
}

std::string to_toml(TrainConfig config) { return to_toml(fields_of(config)); }

}  // namespace teratron
