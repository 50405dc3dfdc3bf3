// Records of a checkpoint's data in its training state: the split of the corpus, and the separation of documents that
// share a sample.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/native/checkpoint.h"
#include "settings/sample_settings.h"
#include "settings/split_settings.h"

namespace teratron {

// Rule of the run that reached this state; nullopt without updates, as in a converted model. Old checkpoints without a
// record were trained in file order.
std::optional<SplitRule> recorded_split(const TrainingState& state);
void record_split(const SplitRule& rule, TrainingState& state);

// Rule of training: that of the checkpoint at `load` (empty: none), which it reads, or of the settings. UserError: the
// settings contradict the checkpoint, so that training would read documents held out before, and override_data is not
// set.
SplitRule training_split(const SplitSettings& settings, const std::filesystem::path& load);

// Rule of evaluating a model in this state. kAuto is the model's own rule; the settings may choose any other.
inline SplitRule evaluation_split(const SplitSettings& settings, const TrainingState& state) {
  return settings.rule(recorded_split(state));
}

// Records the settings for evaluation as the model was trained.
void record_documents(const DocumentSettings& settings, TrainingState& state);
// Recorded rules of attention and positions; every target counts. UserError as DocumentSettings::options().
DocumentOptions recorded_documents(const TrainingState& state, const Tokenizer& tokenizer);

}  // namespace teratron
