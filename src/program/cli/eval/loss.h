// Parts that `eval loss` of models that continue text and of BERTs share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/eval/scoring.h"
#include "data/indexed/indexed_dataset.h"
#include "runtime/loaded_model.h"
#include "settings/split_settings.h"

namespace teratron {

struct EvalLossOptions : ScoringOptions, SplitSettings {
  std::vector<std::string> data_path;
  std::string part = "validation";
  bool baselines = false;
  // Seed and length of a BERT's samples; -1 and 0: the run's, or 1234 and the model's positions where there is none.
  std::int64_t sample_seed = -1, seq_length = 0;

  Faults faults() const;
};
FieldList fields_of(EvalLossOptions& options);

// A corpus that is cut into parts.
struct SplitCorpus {
  Tokenizer tokenizer;
  std::shared_ptr<const IndexedDataset> dataset;  // of the model's vocabulary
  SplitRule rule;
  std::vector<CorpusPart> parts;

  // UserError: there is no such part.
  const CorpusPart& part(const std::string& name) const;
};
// Opens the corpus of the options and cuts it as the model's training did. UserError: it was made with another
// tokenizer, holds a token outside the vocabulary, or lacks the part.
SplitCorpus open_split_corpus(const EvalLossOptions& options, const WeightSource& source);

// Measures and reports the losses of a BERT of pre-training.
void eval_masked_loss(const EvalLossOptions& options, const RankLauncher& launcher, WeightSource source);

}  // namespace teratron
