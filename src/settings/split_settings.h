// How a corpus is split into training, validation and test parts: the flags, and what a checkpoint has to say on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
#include "checkpoint/native/checkpoint.h"
#include "data/split/corpus_split.h"
#include "options/fields.h"

namespace teratron {

enum class SplitOrder { kAuto, kRandom, kFile };

// Of a run that neither a flag nor a checkpoint gives another. It is a constant of its own, not the seed of the
// training, so that runs with different seeds hold out the same documents.
constexpr std::int64_t kDefaultSplitSeed = 1;

struct SplitSettings {
  std::string weights;  // of training, validation and test; empty: as parts() has it
  SplitOrder order = SplitOrder::kAuto;
  std::int64_t seed = 0;       // 0: the checkpoint's, else kDefaultSplitSeed
  bool override_data = false;  // a resumed run may read other samples than the checkpoint's; no flag of this group

  std::string parts() const { return weights.empty() ? "29,1" : weights; }
  Faults faults() const;
};

// --split, --split-order and --split-seed.
void add_split_fields(FieldList& list, SplitSettings& settings);

// The rule of the run that reached this state. Nothing where no update was done, as in a model converted from
// elsewhere. Checkpoints from before there were random parts have no record of a rule; they were trained in file order.
std::optional<SplitRule> recorded_split(const TrainingState& state);
void record_split(const SplitRule& rule, TrainingState& state);

// The rule to train by: that of the checkpoint at `load` (empty: none), which is read for it, or of the settings.
// UserError: the settings contradict the checkpoint, so that training would go on with what was held out before, and
// override_data does not allow it.
SplitRule training_split(const SplitSettings& settings, const std::filesystem::path& load);

// The rule to evaluate by a model in this state: the settings may say anything, kAuto is the model's own rule.
SplitRule evaluation_split(const SplitSettings& settings, const TrainingState& state);

// As a command line says it: "--split-order random --split-seed 1".
std::string text_of(const SplitRule& rule);

// The documents of each part and by what rule they were chosen, for people.
std::string describe(const std::vector<CorpusPart>& parts, const SplitRule& rule);

}  // namespace teratron
