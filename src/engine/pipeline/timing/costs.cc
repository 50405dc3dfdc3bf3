#include "pipeline/timing/costs.h"

#include <numeric>

#include "base/error.h"

namespace teratron::pipeline {

double PassTimes::of(Pass pass) const {
  switch (pass) {
    case Pass::kForward: return forward;
    case Pass::kBackward: return backward;
    case Pass::kBackwardInput: return backward_input;
    case Pass::kBackwardWeight: return backward_weight;
    case Pass::kEmbedding: return embedding;
    case Pass::kHead: return head;
    case Pass::kEmbeddingBackward: return embedding_backward;
  }
  return 0;
}

PassTimes PassTimes::even_parts(double forward, double backward) {
  return {.forward = forward, .backward = backward, .backward_input = backward / 2, .backward_weight = backward / 2};
}

PassTimes PassTimes::times(double factor) const {
  return {.forward = forward * factor,
          .backward = backward * factor,
          .backward_input = backward_input * factor,
          .backward_weight = backward_weight * factor,
          .embedding = embedding * factor,
          .head = head * factor,
          .embedding_backward = embedding_backward * factor};
}

PassTimes PassTimes::plus(const PassTimes& other) const {
  return {.forward = forward + other.forward,
          .backward = backward + other.backward,
          .backward_input = backward_input + other.backward_input,
          .backward_weight = backward_weight + other.backward_weight,
          .embedding = embedding + other.embedding,
          .head = head + other.head,
          .embedding_backward = embedding_backward + other.embedding_backward};
}

double Costs::of(const Schedule& schedule, int stage, const Action& action) const {
  const std::size_t cell = static_cast<std::size_t>(schedule.cell(stage, action));
  return passes[cell][column(action.micro_batch, action.slice)].of(action.pass);
}

std::vector<PassTimes> even_times(int slices, std::span<const std::int64_t> slice_tokens, double forward,
                                  double backward) {
  std::vector<std::int64_t> tokens(slice_tokens.begin(), slice_tokens.end());
  tokens.resize(static_cast<std::size_t>(slices), 1);
  const auto whole = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}));
  std::vector<PassTimes> times;
  for (const std::int64_t length : tokens) {
    const double share = static_cast<double>(length) / whole;
    times.push_back(PassTimes::even_parts(forward * share, backward * share));
  }
  return times;
}

Costs even_costs(const Schedule& schedule, double forward, double backward, double transfer) {
  return costs_of_each(
      schedule, !schedule.slices_each.empty(),
      [&](int m) { return even_times(schedule.slices_of(m), {}, forward, backward); }, transfer);
}

Costs costs_of_each(const Schedule& schedule, bool differ,
                    const std::function<std::vector<PassTimes>(int micro_batch)>& slices_of, double transfer) {
  if (!differ) return sliced_costs(schedule, slices_of(0), transfer);
  Costs costs;
  std::vector<PassTimes> cell;
  for (int m = 0; m < schedule.micro_batches; ++m) {
    costs.first_columns.push_back(cell.size());
    for (const PassTimes& times : slices_of(m)) cell.push_back(times.times(1.0 / schedule.virtual_stages));
  }
  costs.transfers.assign(cell.size(), transfer);
  costs.passes.assign(static_cast<std::size_t>(schedule.cells()), cell);
  return costs;
}

Costs sliced_costs(const Schedule& schedule, std::span<const PassTimes> slices, double transfer) {
  check_equal(slices.size(), static_cast<std::size_t>(schedule.slices), "slices with a cost");
  std::vector<PassTimes> cell(slices.begin(), slices.end());
  for (PassTimes& times : cell) times = times.times(1.0 / schedule.virtual_stages);
  return {.passes = std::vector(static_cast<std::size_t>(schedule.cells()), cell),
          .transfers = std::vector(slices.size(), transfer)};
}

}  // namespace teratron::pipeline
