// Settings of the split of a corpus into training, validation and test parts.
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

// Default seed of the split. It does not depend on the seed of training: runs with different seeds hold out the same
// documents.
constexpr std::int64_t kDefaultSplitSeed = 1;

struct SplitSettings {
  std::string weights;  // of training, validation and test; empty: the default of parts()
  SplitOrder order = SplitOrder::kAuto;
  std::int64_t seed = 0;       // 0: the checkpoint's, else kDefaultSplitSeed
  bool override_data = false;  // a resumed run may read other samples than the checkpoint's; flag of another group

  std::string parts() const { return weights.empty() ? "29,1" : weights; }
  // Rule of the flags; where they are not given, the checkpoint's.
  SplitRule rule(const std::optional<SplitRule>& recorded = std::nullopt) const;
  std::string given_flags() const;  // "--split-order file"
  Faults faults() const;
};

// Adds --split, --split-order and --split-seed.
void add_split_fields(FieldList& list, SplitSettings& settings);

// Flags of a rule: "--split-order random --split-seed 1".
std::string text_of(const SplitRule& rule);

// Line for people: documents of each part, and the rule of the split.
std::string describe(const std::vector<CorpusPart>& parts, const SplitRule& rule);

}  // namespace teratron
