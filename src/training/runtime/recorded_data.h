// Records in a checkpoint's training state of the data it was trained on: how the corpus was split, and how documents
// that share a sample were kept apart.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/native/checkpoint.h"
#include "settings/document_settings.h"
#include "settings/split_settings.h"

namespace teratron {

// The rule of the run that reached this state. Nothing where no update was done, as in a model converted from
// elsewhere. Checkpoints from before there were random parts have no record of a rule; they were trained in file order.
std::optional<SplitRule> recorded_split(const TrainingState& state);
void record_split(const SplitRule& rule, TrainingState& state);

// The rule to train by: that of the checkpoint at `load` (empty: none), which is read for it, or of the settings.
// UserError: the settings contradict the checkpoint, so that training would go on with what was held out before, and
// override_data does not allow it.
SplitRule training_split(const SplitSettings& settings, const std::filesystem::path& load);

// The rule to evaluate by a model in this state: the settings may say anything, kAuto is the model's own rule.
inline SplitRule evaluation_split(const SplitSettings& settings, const TrainingState& state) {
  return settings.rule(recorded_split(state));
}

// Records the settings for evaluation as the model was trained.
void record_documents(const DocumentSettings& settings, TrainingState& state);
// The recorded rules of attention and positions; every target counts. UserError as DocumentSettings::options().
DocumentOptions recorded_documents(const TrainingState& state, const Tokenizer& tokenizer);

}  // namespace teratron
