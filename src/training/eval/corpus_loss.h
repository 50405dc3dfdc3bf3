// The loss of a model on a part of a tokenised corpus, next to n-gram models of the same tokens.
#pragma once

#include <cstdint>
#include <optional>

#include "data/split/corpus_split.h"
#include "eval/windows.h"
#include "model/language_model.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct CorpusLoss {
  std::int64_t targets = 0;
  double loss = 0;                      // nats a token, mean over the targets
  std::optional<double> bits_per_byte;  // of the text the targets stand for; needs byte-level BPE, which loses none
  std::optional<double> unigram_loss, trigram_loss;  // of models trained on the training part, on the same targets
};

struct CorpusLossOptions {
  std::int64_t stride = 0;         // of overlapping windows; 0: as long as the model's context
  DocumentOptions documents = {};  // how windows treat the documents they hold
  bool baselines = false;          // needs a training part to learn them from; computed by the caller alone
  ScoringObserver observer = [](const ScoringState&) {};
};

// Scores every token of `part` but the first. UserError: fewer than two tokens. Every rank of the model's mesh calls
// it and gets the same losses; a tokenizer and the baselines are wanted by one of them, as a rule.
CorpusLoss corpus_loss(LanguageModel& model, const IndexedDataset& dataset, const CorpusPart& part,
                       const CorpusPart& training, const Tokenizer* tokenizer, const CorpusLossOptions& options);

}  // namespace teratron
