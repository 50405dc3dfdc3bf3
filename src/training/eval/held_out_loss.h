// Losses of a model on held-out data: a part of a corpus, the words of chats, the masked words of a BERT's texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/samples/bert_samples.h"
#include "data/samples/chat_samples.h"
#include "data/split/corpus_split.h"
#include "eval/windows.h"
#include "model/encoder.h"
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

// The following two score every sample of an epoch once, with training's weights. The model takes samples of their
// length. Every rank of the mesh calls them; data-parallel ranks share the samples, and all get the same result.
// UserError: a loss is not finite.

struct ChatLoss {
  std::int64_t targets = 0;
  double loss = 0;  // nats per token, mean over the targets
};

// Loss on the words that are to be learned. The model's executor was made with first keys and position ids.
ChatLoss chat_loss(LanguageModel& model, const ChatSamples& samples, const ScoringObserver& observer);

struct MaskedLoss {
  std::int64_t targets = 0, pairs = 0;  // masked tokens; pairs of texts
  double loss = 0;                      // nats per target, their mean
  double order_loss = 0;                // nats per pair, their mean
  double order_accuracy = 0;            // share of the pairs
};

// Losses of the masked words and of the order of pairs. The encoder has the heads of pre-training. done(share):
// progress of this copy.
MaskedLoss masked_loss(Encoder& encoder, const BertSamples& samples, const std::function<void(double share)>& done);

}  // namespace teratron
