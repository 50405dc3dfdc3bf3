#include "eval/corpus_loss.h"

#include <numbers>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "eval/ngram.h"

namespace teratron {
namespace {

std::vector<std::int32_t> read_part(const IndexedDataset& dataset, const CorpusPart& part) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(part.tokens()));
  part.read(dataset, 0, tokens);
  return tokens;
}

}  // namespace

CorpusLoss corpus_loss(LanguageModel& model, const IndexedDataset& dataset, const CorpusPart& part,
                       const CorpusPart& training, const Tokenizer* tokenizer, const CorpusLossOptions& options) {
  if (part.tokens() < 2) {
    throw_user_error("the {} part of {} has {}; at least 2 are needed to score one", part.name, dataset.name(),
                     counted(part.tokens(), "token"));
  }
  const std::vector<std::int32_t> tokens = read_part(dataset, part);
  CorpusLoss result{.targets = static_cast<std::int64_t>(tokens.size()) - 1};
  const std::int64_t length = model.options().tokens;
  const auto windows = scoring_windows(result.targets, length, options.stride == 0 ? length : options.stride);
  const double sum = score_windows(model, tokens, windows, options.observer, options.documents);
  result.loss = sum / static_cast<double>(result.targets);

  if (tokenizer != nullptr && tokenizer->kind() == TokenizerKind::kBytePair) {
    std::size_t bytes = 0;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      // An end of text has no bytes, though its prediction is part of the loss.
      if (tokens[i] != tokenizer->end_of_text()) bytes += tokenizer->bytes_of(tokens[i]).size();
    }
    if (bytes > 0) result.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(bytes);
  }
  if (options.baselines) {
    const std::vector<std::int32_t> seen = read_part(dataset, training);
    const std::int64_t vocab = model.config().vocab_size;
    result.unigram_loss = UnigramModel(seen, vocab).nats_per_token(tokens, 1);
    result.trigram_loss = KneserNeyTrigram(seen, vocab).nats_per_token(tokens, 1);
  }
  return result;
}

}  // namespace teratron
