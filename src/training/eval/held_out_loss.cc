#include "eval/held_out_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "eval/finite_outputs.h"
#include "eval/ngram.h"

namespace teratron {
namespace {

std::vector<std::int32_t> read_part(const IndexedDataset& dataset, const CorpusPart& part) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(part.tokens()));
  part.read(dataset, 0, tokens);
  return tokens;
}

// Samples of an epoch that this copy of the model scores.
struct OwnSamples {
  std::int64_t first, end;
};
OwnSamples own_samples(const Samples& samples, const Communicator& copies) {
  const std::int64_t count = samples.samples_per_epoch();
  return {count * copies.rank() / copies.size(), count * (copies.rank() + 1) / copies.size()};
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

ChatLoss chat_loss(LanguageModel& model, const ChatSamples& samples, const ScoringObserver& observer) {
  Communicator& copies = *model.mesh().data;
  auto [done, end] = own_samples(samples, copies);
  const auto learned = [&](std::int64_t first, std::int64_t samples_count) {
    return static_cast<std::int64_t>(samples.total_weights({first, samples_count}).targets);
  };
  ScoringState state{.targets = learned(done, end - done)};
  SampleBatch batch = samples.make_batch(model.options().batch);
  std::vector<float> losses;
  while (done < end) {
    const std::int64_t together = std::min(model.options().batch, end - done);
    const auto tokens = static_cast<std::size_t>(together * samples.seq_length());
    samples.read({done, together}, batch, 0);
    losses.resize(tokens);
    model.losses({.ids = std::span(batch.ids).first(tokens),
                  .first_keys = std::span(batch.first_keys).first(tokens),
                  .position_ids = std::span(batch.position_ids).first(tokens),
                  .targets = std::span(batch.targets).first(tokens),
                  .batch = together,
                  .tokens = samples.seq_length()},
                 0, losses);
    for (std::size_t i = 0; i < tokens; ++i) losses[i] = batch.weights[i] == 0 ? 0 : losses[i];
    if (const auto found = first_not_finite(losses)) {
      const std::int64_t sample = done + static_cast<std::int64_t>(*found) / samples.seq_length();
      throw_output_not_finite("a loss in " + samples.source(sample), model.backend().compute_dtype());
    }
    for (const float loss : losses) state.sum += loss;
    state.scored += learned(done, together);
    observer(state);
    done += together;
  }
  std::array<double, 2> sums = {state.sum, static_cast<double>(state.targets)};
  copies.all_reduce_host(sums);
  return {.targets = static_cast<std::int64_t>(sums[1]), .loss = sums[0] / sums[1]};
}

MaskedLoss masked_loss(Encoder& encoder, const BertSamples& samples, const std::function<void(double share)>& done) {
  Communicator& copies = *encoder.mesh().data;
  const std::int64_t tokens = samples.seq_length();
  const auto [begin, end] = own_samples(samples, copies);
  SampleBatch batch = samples.make_batch(encoder.options().batch);
  std::array<double, 5> sums = {};  // targets, pairs, and the three kinds of BERT's losses
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t together = std::min(encoder.options().batch, end - at);
    samples.read({at, together}, batch, 0);
    const auto first = [&](const auto& values, std::int64_t each) {
      return std::span(values).first(static_cast<std::size_t>(together * each));
    };
    const MicroBatch micro_batch{.ids = first(batch.ids, tokens),
                                 .token_types = first(batch.token_types, tokens),
                                 .key_lengths = first(batch.key_lengths, 1),
                                 .targets = first(batch.targets, tokens),
                                 .weights = first(batch.weights, tokens),
                                 .labels = first(batch.labels, 1),
                                 .label_weights = first(batch.label_weights, 1),
                                 .batch = together,
                                 .tokens = tokens};
    const LossSums losses = encoder.evaluate(micro_batch);
    if (!std::isfinite(losses.total())) {
      throw_output_not_finite("a loss of " + samples.source(at), encoder.backend().compute_dtype());
    }
    sums[0] += std::accumulate(micro_batch.weights.begin(), micro_batch.weights.end(), 0.0);
    sums[1] += std::accumulate(micro_batch.label_weights.begin(), micro_batch.label_weights.end(), 0.0);
    for (std::size_t kind = 0; kind < losses.of_kind.size(); ++kind) sums.at(2 + kind) += losses.of_kind[kind];
    at += together;
    done(static_cast<double>(at - begin) / static_cast<double>(end - begin));
  }
  copies.all_reduce_host(sums);
  return {.targets = static_cast<std::int64_t>(sums[0]),
          .pairs = static_cast<std::int64_t>(sums[1]),
          .loss = sums[2] / std::max(sums[0], 1.0),
          .order_loss = sums[3] / std::max(sums[1], 1.0),
          .order_accuracy = sums[4] / std::max(sums[1], 1.0)};
}

}  // namespace teratron
