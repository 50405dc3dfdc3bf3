#include "eval/masked_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "eval/finite_outputs.h"

namespace teratron {

MaskedLoss masked_loss(Encoder& encoder, const BertSamples& samples, const std::function<void(double share)>& done) {
  Communicator& copies = *encoder.mesh().data;
  const std::int64_t count = samples.samples_per_epoch(), tokens = samples.seq_length();
  const std::int64_t begin = count * copies.rank() / copies.size(), end = count * (copies.rank() + 1) / copies.size();
  SampleBatch batch = samples.make_batch(encoder.options().batch);
  std::array<double, 5> sums = {};  // targets, pairs, and the three kinds of BERT's losses
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t together = std::min(encoder.options().batch, end - at);
    samples.read({at, together}, batch, 0);
    const auto of_tokens = [&](const auto& values) {
      return std::span(values).first(static_cast<std::size_t>(together * tokens));
    };
    const auto of_samples = [&](const auto& values) {
      return std::span(values).first(static_cast<std::size_t>(together));
    };
    const MicroBatch micro_batch{.ids = of_tokens(batch.ids),
                                 .token_types = of_tokens(batch.token_types),
                                 .key_lengths = of_samples(batch.key_lengths),
                                 .targets = of_tokens(batch.targets),
                                 .weights = of_tokens(batch.weights),
                                 .labels = of_samples(batch.labels),
                                 .label_weights = of_samples(batch.label_weights),
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
