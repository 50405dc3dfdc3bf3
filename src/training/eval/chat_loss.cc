#include "eval/chat_loss.h"

#include <algorithm>
#include <array>
#include <vector>

#include "eval/finite_outputs.h"

namespace teratron {

ChatLoss chat_loss(LanguageModel& model, const ChatSamples& samples, const ScoringObserver& observer) {
  Communicator& copies = *model.mesh().data;
  const std::int64_t count = samples.samples_per_epoch();
  std::int64_t done = count * copies.rank() / copies.size();
  const std::int64_t end = count * (copies.rank() + 1) / copies.size();
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

}  // namespace teratron
