// Loss of a model on a part of a tokenised corpus, beside n-gram models of the same tokens.
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
  double loss = 0;                                   // nats per token, mean over the targets
  std::optional<double> bits_per_byte;               // of the targets' text; needs byte-level BPE, which is lossless
  std::optional<double> unigram_loss, trigram_loss;  // of models of the training part, on the same targets
};

struct CorpusLossOptions {
  std::int64_t stride = 0;         // of overlapping windows; 0: the model's context
  DocumentOptions documents = {};  // separation of the documents of a window
  bool baselines = false;          // n-gram models of the training part; computed on the calling rank alone
  ScoringObserver observer = [](const ScoringState&) {};
};

// Scores every token of `part` but the first. Every rank of the model's mesh calls it and gets the same loss. Usually
// one rank alone passes a tokenizer and asks for baselines. UserError: fewer than two tokens.
CorpusLoss corpus_loss(LanguageModel& model, const IndexedDataset& dataset, const CorpusPart& part,
                       const CorpusPart& training, const Tokenizer* tokenizer, const CorpusLossOptions& options);

}  // namespace teratron
