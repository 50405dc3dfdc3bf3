#include "train/losses.h"

#include <algorithm>

#include "train/micro_batches.h"

namespace teratron {
namespace {

// Sums over at most a micro-batch, on this copy of the model.
LossSums loss_sums(Executor& executor, SampleReader& reader, const Samples& samples, SampleRange positions,
                   SampleBatch& batch) {
  reader.read(samples, positions, batch, 0);
  return executor.evaluate(MicroBatchCutter(executor, samples.seq_length()).micro_batch(batch, 0, positions.count));
}

// Sums divided by their weights; a mean over nothing is 0.
void divide(LossSums& sums, const std::vector<ModelTraits::Loss>& kinds, const Samples::TotalWeights& totals) {
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const double total = kinds[kind].of_labels ? totals.labels : totals.targets;
    sums.of_kind[kind] = total > 0 ? sums.of_kind[kind] / total : 0;
  }
}

}  // namespace

LossSums mean_losses(Executor& executor, SampleReader& reader, const Samples& samples, SampleRange positions) {
  Communicator& copies = *executor.mesh().data;
  const std::int64_t size = executor.options().batch;
  LossSums means = no_losses(executor.loss_kinds());
  SampleBatch batch = samples.make_batch(size);
  for (std::int64_t done = copies.rank() * size; done < positions.count; done += copies.size() * size) {
    const SampleRange some{positions.first + done, std::min(size, positions.count - done)};
    const LossSums sums = loss_sums(executor, reader, samples, some, batch);
    for (std::size_t kind = 0; kind < sums.of_kind.size(); ++kind) means.of_kind[kind] += sums.of_kind[kind];
  }
  copies.all_reduce_host(means.of_kind);
  divide(means, executor.loss_kinds(), reader.total_weights(samples, positions));
  return means;
}

std::vector<SampleLoss> losses_of_each(Executor& executor, SampleReader& reader, const Samples& samples,
                                       SampleRange positions) {
  Communicator& copies = *executor.mesh().data;
  const std::int64_t together = executor.model().traits.label_sequences;
  SampleBatch batch = samples.make_batch(executor.options().batch);
  std::vector<double> losses(static_cast<std::size_t>(positions.count / together));
  std::vector<SampleLoss> result;
  for (std::size_t group = 0; group < losses.size(); ++group) {
    const SampleRange some{positions.first + static_cast<std::int64_t>(group) * together, together};
    result.push_back({.positions = some});
    if (static_cast<int>(group) % copies.size() != copies.rank()) continue;
    LossSums sums = loss_sums(executor, reader, samples, some, batch);
    divide(sums, executor.loss_kinds(), reader.total_weights(samples, some));
    losses[group] = sums.total();
  }
  copies.all_reduce_host(losses);
  for (std::size_t group = 0; group < losses.size(); ++group) result[group].loss = losses[group];
  return result;
}

}  // namespace teratron
