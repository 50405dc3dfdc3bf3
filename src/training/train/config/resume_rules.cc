#include "train/config/resume_rules.h"

#include <fmt/ranges.h>

#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/tokenizer_files.h"
#include "data/data_path.h"
#include "options/output.h"
#include "options/reading.h"
#include "runtime/recorded_data.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

ResumeRule rule_of(const Field& field) {
  switch (field.scope) {
    case FieldScope::kData: return ResumeRule::kData;
    case FieldScope::kSchedule: return ResumeRule::kSchedule;
    case FieldScope::kOptimizer: return ResumeRule::kOptimizer;
    default: return ResumeRule::kAllowed;
  }
}

// Whether both read the same samples, which depend on the weights of a blend and on where validation data come from. A
// corpus may have moved: Trainer::start compares its size.
bool reads_alike(const TrainConfig& there, const TrainConfig& here) {
  return weights_of(there.data_path) == weights_of(here.data_path) &&
         there.valid_data_path.empty() == here.valid_data_path.empty();
}

// Makes paths absolute, so that a record means the same in any working directory.
TrainConfig with_absolute_paths(TrainConfig config) {
  config.data_path = with_absolute_names(config.data_path);
  config.valid_data_path = with_absolute_names(config.valid_data_path);
  for (fs::path* const path : {&config.model.tokenizer, &config.pipeline.profile, &config.output.load,
                               &config.output.finetune, &config.output.tensorboard_dir}) {
    *path = absolute_name(*path);
  }
  return config;
}

// Fills in every value that follows from others.
TrainConfig resolved(TrainConfig config, const ModelConfig& model, const SplitRule& split) {
  config.model.config = model;
  config.batch.global_batch_size = config.largest_batch();
  config.optimizer.learning_rate.decay = config.schedule().decay;
  config.split.order = split.seed ? SplitOrder::kRandom : SplitOrder::kFile;
  config.split.seed = static_cast<std::int64_t>(split.seed.value_or(0));
  return with_absolute_paths(std::move(config));
}

bool has_tokenizer_of(const fs::path& checkpoint, const fs::path& tokenizer) {
  const FileContents there = find_tokenizer_files(checkpoint);
  return tokenizer.empty() ? there.empty() : are_same_tokenizer(there, read_tokenizer_files(tokenizer));
}

// Differences from a checkpoint that has no record of its settings.
std::vector<SettingDifference> differences_from_state(const TrainingState& state, const TrainConfig& config) {
  std::vector<SettingDifference> found;
  if (static_cast<std::uint64_t>(config.seed) != state.seed) {
    found.push_back({"seed", fmt::format("{}", state.seed), fmt::format("{}", config.seed), ResumeRule::kData});
  }
  if (state.consumed_samples > 0 && state.consumed_tokens != state.consumed_samples * config.model.seq_length) {
    found.push_back({"seq-length", fmt::format("{}", state.consumed_tokens / state.consumed_samples),
                     fmt::format("{}", config.model.seq_length), ResumeRule::kData});
  }
  const std::int64_t applied = applied_updates(state);
  const double expected = applied > 0 ? config.schedule().at(applied) : state.learning_rate;
  // Both are computed alike; libraries of other machines may round a cosine otherwise.
  if (std::abs(expected - state.learning_rate) > 1e-9 * std::abs(state.learning_rate)) {
    found.push_back({fmt::format("learning rate of update {}", applied), fmt::format("{:.6g}", state.learning_rate),
                     fmt::format("{:.6g}", expected), ResumeRule::kSchedule});
  }
  return found;
}

// `has_records`: with the place of the run's TensorBoard records.
std::string settings_text(const TrainConfig& config, bool has_records) {
  TrainConfig saved = with_absolute_paths(config);
  return to_toml(fields_of(saved), [&](const Field& field) {
    return field.scope == FieldScope::kStart || (field.scope == FieldScope::kPreset && !saved.model.needs_preset()) ||
           (!has_records && field.address() == &saved.output.tensorboard_dir);
  });
}

std::string text_of(const SettingDifference& difference) {
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  const bool is_flag = difference.field.find(' ') == std::string::npos;
  return fmt::format("{}{} {} there, {} now", is_flag ? "--" : "", difference.field, shown(difference.there),
                     shown(difference.here));
}

}  // namespace

std::string recorded_settings(const TrainConfig& config, const ModelConfig& model, const SplitRule& split) {
  return settings_text(resolved(config, model, split), true);
}

// The records of one run do not take those of another that starts from its settings.
std::string saved_settings(const TrainConfig& config) { return settings_text(config, false); }

std::vector<Setting> recorded_settings_of(const CheckpointInfo& checkpoint, FieldList& fields) {
  FaultLines other_versions;  // flags that this one does not have
  return read_config(fields, read_file(*checkpoint.settings), checkpoint.settings->string(), other_versions);
}

std::optional<TrainConfig> settings_of(const CheckpointInfo& checkpoint) {
  if (!checkpoint.settings) return std::nullopt;
  TrainConfig config;
  FieldList fields = fields_of(config);
  FaultLines other_versions;  // values that this one does not have
  apply_settings(fields, recorded_settings_of(checkpoint, fields), other_versions);
  config.model.config = checkpoint.model;
  return config;
}

TrainConfig filled_from(const CheckpointInfo& checkpoint, TrainConfig config) {
  config.model.config.activation = checkpoint.model.activation;  // which has no flag
  if (config.model.config.vocab_size == 0) config.model.config.vocab_size = checkpoint.model.vocab_size;
  if (config.model.config.max_position_embeddings == 0) {
    config.model.config.max_position_embeddings = checkpoint.model.max_position_embeddings;
  }
  const std::optional<TrainConfig> recorded = settings_of(checkpoint);
  if (!recorded) return config;
  config.output.finetune = recorded->output.finetune;
  if (config.optimizer.learning_rate.decay == 0 && !config.output.override_schedule) {
    config.optimizer.learning_rate.decay = recorded->schedule().decay;
  }
  return config;
}

std::vector<SettingDifference> differences_from(const CheckpointInfo& checkpoint, const TrainConfig& config) {
  const std::optional<TrainConfig> recorded = settings_of(checkpoint);
  if (!recorded) return differences_from_state(checkpoint.state, config);
  TrainConfig there = with_absolute_paths(*recorded);  // older versions recorded paths as they were given
  TrainConfig here = resolved(config, config.model.model_for(checkpoint.model.vocab_size),
                              evaluation_split(config.split, checkpoint.state));
  for (TrainConfig* const config_of : {&there, &here}) config_of->split.weights = config_of->parts();  // given or not
  std::vector<SettingDifference> found;
  FieldList ours = fields_of(here), theirs = fields_of(there);
  for (const Field& field : ours) {
    if (field.is_of_command() || field.scope == FieldScope::kPreset) continue;
    if (field.address() == &here.model.tokenizer) continue;  // its content counts
    const std::string now = field.value_text(), before = theirs.find(field.name)->value_text();
    if (now == before) continue;
    const bool reads_others = field.scope == FieldScope::kInput && !reads_alike(there, here);
    found.push_back({field.name, before, now, reads_others ? ResumeRule::kData : rule_of(field)});
  }
  if (!has_tokenizer_of(checkpoint.folder, config.model.tokenizer)) {
    found.push_back({"tokenizer", "that of the checkpoint", config.model.tokenizer.string(), ResumeRule::kAllowed});
  }
  return found;
}

void require_resumable(const CheckpointInfo& checkpoint, const TrainConfig& config) {
  check_same_model(checkpoint.folder, checkpoint.model, config.model.model_for(checkpoint.model.vocab_size));
  std::vector<std::string> data, schedule, optimizer;
  for (const SettingDifference& difference : differences_from(checkpoint, config)) {
    if (difference.rule == ResumeRule::kData && !config.split.override_data) data.push_back(text_of(difference));
    if (difference.rule == ResumeRule::kSchedule && !config.output.override_schedule)
      schedule.push_back(text_of(difference));
    if (difference.rule == ResumeRule::kOptimizer) optimizer.push_back(text_of(difference));
  }
  std::vector<std::string> faults;
  if (!data.empty()) {
    faults.push_back(fmt::format("other samples would be read: {}; leave that out, or allow it by --override-data",
                                 fmt::join(data, "; ")));
  }
  if (!schedule.empty()) {
    faults.push_back(
        fmt::format("the learning rate would follow another schedule: {}; leave that out, or allow it by "
                    "--override-opt-param-scheduler",
                    fmt::join(schedule, "; ")));
  }
  if (!optimizer.empty()) {
    faults.push_back(
        fmt::format("the checkpoint's state is of another optimizer: {0}; leave that out, or start a new run from the "
                    "weights: --finetune {1} in place of --load",
                    fmt::join(optimizer, "; "), checkpoint.folder.string()));
  }
  if (!faults.empty()) {
    throw_user_error("'{}' was trained with other settings:\n  {}", checkpoint.folder.string(),
                     fmt::join(faults, "\n  "));
  }
}

std::string future_of_learning_rate(const TrainConfig& config, std::int64_t applied) {
  const LearningRateSchedule schedule = config.schedule();
  const double next = schedule.at(applied + 1);
  if (schedule.style == DecayStyle::kConstant) {
    return applied + 1 < schedule.warmup
               ? fmt::format("the learning rate rises from {:g} to {:g} at update {} and stays there", next,
                             schedule.peak, schedule.warmup)
               : fmt::format("the learning rate stays at {:g}", schedule.peak);
  }
  if (applied + 1 >= schedule.decay) {
    return fmt::format(
        "the learning rate has come down to {0:g} after {1} updates and stays there; to let it fall until update {2}: "
        "--lr-decay-iters {2} --override-opt-param-scheduler",
        schedule.minimum, schedule.decay, config.train_iters);
  }
  const std::string then = schedule.decay < config.train_iters ? " and stays there" : "";
  if (schedule.style == DecayStyle::kWsd && applied + 1 <= schedule.fall_begins()) {
    return fmt::format("the learning rate {} until update {}, falls to {:g} at update {}{}",
                       applied + 1 < schedule.warmup ? fmt::format("rises from {:g} to {:g} at update {}, stays there",
                                                                   next, schedule.peak, schedule.warmup)
                                                     : fmt::format("stays at {:g}", next),
                       schedule.fall_begins(), schedule.minimum, schedule.decay, then);
  }
  return applied + 1 < schedule.warmup
             ? fmt::format("the learning rate rises from {:g} to {:g} at update {}, falls to {:g} at update {}{}", next,
                           schedule.peak, schedule.warmup, schedule.minimum, schedule.decay, then)
             : fmt::format("the learning rate goes on from {:g}, falls to {:g} at update {}{}", next, schedule.minimum,
                           schedule.decay, then);
}

std::int64_t applied_updates(const TrainingState& state) {
  const std::int64_t skipped = state.counter(kSkippedIterations);
  if (skipped < 0 || skipped > state.iteration) {
    throw_user_error("the checkpoint says that {} of its {} updates were skipped; copy it again", skipped,
                     state.iteration);
  }
  return state.iteration - skipped;
}

}  // namespace teratron
