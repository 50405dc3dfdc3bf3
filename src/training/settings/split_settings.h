// How a corpus is split into training, validation and test parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
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
  // The rule of the flags, and where they say nothing that of a checkpoint.
  SplitRule rule(const std::optional<SplitRule>& recorded = std::nullopt) const;
  std::string given_flags() const;  // "--split-order file"
  Faults faults() const;
};

// --split, --split-order and --split-seed.
void add_split_fields(FieldList& list, SplitSettings& settings);

// As a command line says it: "--split-order random --split-seed 1".
std::string text_of(const SplitRule& rule);

// The documents of each part and by what rule they were chosen, for people.
std::string describe(const std::vector<CorpusPart>& parts, const SplitRule& rule);

}  // namespace teratron
