// Settings that a resumed run keeps from its checkpoint, and settings that may differ (docs/resume.md has the table). A
// checkpoint records the settings of the training that wrote it; older ones know only their model, seed and number of
// samples. A field's scope (options/fields.h) decides: settings of the command are neither taken from a checkpoint nor
// compared with one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/native/checkpoint.h"
#include "options/reading.h"
#include "train/config/config.h"

namespace teratron {

// config.toml of a --save folder, from which --config starts another run like this one. It leaves out settings of this
// start alone (--load and the flags that override its checkpoint, --json, --trace) and a preset that is not the
// model's. Paths of inputs are absolute.
std::string saved_settings(const TrainConfig& config);
// Settings recorded in a checkpoint: saved_settings() with the values that follow from others or from `model`.
std::string recorded_settings(const TrainConfig& config, const ModelConfig& model, const SplitRule& split);

// The record of a checkpoint that has one, for these fields; fields of other versions are left out. UserError: no
// TOML.
std::vector<Setting> recorded_settings_of(const CheckpointInfo& checkpoint, FieldList& fields);

// The settings of the training that wrote the checkpoint. Nothing where it has no record of them.
std::optional<TrainConfig> settings_of(const CheckpointInfo& checkpoint);

// `config` with a --lr-decay-iters, --vocab-size and --max-position-embeddings of 0 filled in from the checkpoint that
// it resumes, and with where that run began; the first only where the schedule is not overridden.
TrainConfig filled_from(const CheckpointInfo& checkpoint, TrainConfig config);

enum class ResumeRule {
  kAllowed,    // it is listed
  kData,       // it needs --override-data: other samples would be read, or read again
  kSchedule,   // it needs --override-opt-param-scheduler
  kOptimizer,  // it needs a new run (--finetune): the other optimizer's state is of no use
};

struct SettingDifference {
  std::string field;        // "seed"
  std::string there, here;  // in the checkpoint, and now
  ResumeRule rule = ResumeRule::kAllowed;
};

// Every setting of the run in which `config`, filled in, differs from the checkpoint.
std::vector<SettingDifference> differences_from(const CheckpointInfo& checkpoint, const TrainConfig& config);

// UserError with everything that makes `config` another run than the checkpoint's and is not overridden. Every rank may
// call it; it reads files and changes none.
void require_resumable(const CheckpointInfo& checkpoint, const TrainConfig& config);

// "the learning rate ...": what it will do from `applied` updates to the end of the run, in one sentence for people.
std::string future_of_learning_rate(const TrainConfig& config, std::int64_t applied);

// Updates of the checkpoint that changed the weights, by which the learning rate counts.
std::int64_t applied_updates(const TrainingState& state);
// Progress of the checkpoint, from which the batches of a resumed run are counted.
inline BatchesDone batches_done(const TrainingState& state) {
  return {.updates = state.iteration, .samples = state.consumed_samples};
}
inline constexpr const char* kSkippedIterations = "skipped_iterations";  // among its counters

}  // namespace teratron
