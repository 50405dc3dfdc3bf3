#include "train/doctor/step_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "train/run_control.h"

namespace teratron {
namespace {

using Kind = StepTallies::Kind;

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same_bits(const StepTallies::Entry& a, const StepTallies::Entry& b) {
  return same_bits(a.tally.squares, b.tally.squares) && a.tally.bits == b.tally.bits && a.elements == b.elements &&
         std::bit_cast<std::uint32_t>(a.tally.largest) == std::bit_cast<std::uint32_t>(b.tally.largest);
}

// A rank's first difference; `order` counts in the order in which a step computes.
struct OwnParting {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t order = kNone;
  std::string what;
};

constexpr std::int64_t kPhase = std::int64_t{1} << 32;  // more than layers

std::int64_t order_of(const StepTallies::Place& place, std::int64_t layers) {
  switch (place.kind) {
    case Kind::kWeights: return 0;  // of all tensors alike: ranks have them in another order
    case Kind::kCopiedWeights: return kPhase;
    case Kind::kOutput: return 2 * kPhase + place.layer + 1;
    case Kind::kGradient: return 3 * kPhase + layers - place.layer;
  }
  return 0;
}

std::string name_of_output(std::int64_t layer) {
  return layer < 0 ? std::string("the embedding's output") : fmt::format("the output of layer {}", layer);
}

std::string text_of(const StepTallies::Place& place) {
  switch (place.kind) {
    case Kind::kWeights:
    case Kind::kCopiedWeights: return fmt::format("held other bits of '{}'", place.parameter->name);
    case Kind::kOutput: return fmt::format("computed other bits of {}", name_of_output(place.layer));
    case Kind::kGradient: return fmt::format("computed other bits of the gradient of {}", name_of_output(place.layer));
  }
  return "";
}

OwnParting own_parting(Executor& executor, const StepNumbers& record, const StepNumbers& replay) {
  const std::vector<StepTallies::Place>& places = executor.tallies()->places();
  const auto layers = static_cast<std::int64_t>(executor.model().layers.size());
  OwnParting first;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (same_bits(record.entries[i], replay.entries[i])) continue;
    const std::int64_t order = order_of(places[i], layers);
    if (first.order == OwnParting::kNone) {
      first = {order, text_of(places[i])};
    } else if (order == first.order) {
      ++more;
    }
  }
  if (more > 0) first.what += fmt::format(" (and of {} more tensor{})", more, more == 1 ? "" : "s");
  if (first.order != OwnParting::kNone) return first;
  if (!same_bits(record.loss, replay.loss)) return {4 * kPhase, "computed another loss"};
  if (!record.gradient_norm || !replay.gradient_norm || same_bits(*record.gradient_norm, *replay.gradient_norm)) {
    return first;
  }
  return {5 * kPhase, "computed another norm of the gradients"};
}

}  // namespace

StepNumbers numbers_of(const Update& update, Executor& executor) {
  return {.iteration = update.report.iteration,
          .loss = update.report.loss,
          .gradient_norm = update.gradient_norm,
          .entries = executor.tallies()->read()};
}

void StepRecord::add(StepNumbers numbers) {
  numbers_.push_back(std::move(numbers));
  if (numbers_.size() > kMost) numbers_.pop_front();
}

const StepNumbers* StepRecord::find(std::int64_t iteration) const {
  if (numbers_.empty() || iteration < numbers_.front().iteration || iteration > numbers_.back().iteration) {
    return nullptr;
  }
  return &numbers_[static_cast<std::size_t>(iteration - numbers_.front().iteration)];
}

void StepRecord::forget_until(std::int64_t iteration) {
  while (!numbers_.empty() && numbers_.front().iteration <= iteration) numbers_.pop_front();
}

std::optional<Parting> first_parting(Executor& executor, const StepNumbers& record, const StepNumbers& replay) {
  const Mesh& mesh = executor.mesh();
  const OwnParting own = own_parting(executor, record, replay);
  std::int64_t first = own.order;
  for (Communicator* const group : {mesh.model.get(), mesh.data.get()}) {
    for (const std::int64_t order : group->all_gather_host(first)) first = std::min(first, order);
  }
  if (first == OwnParting::kNone) return std::nullopt;
  // Ranks in which it is so, by a sum over all.
  const auto size = static_cast<std::size_t>(mesh.model->size());
  std::vector<double> has(size * static_cast<std::size_t>(mesh.data->size()));
  const bool is_first = own.order == first;
  if (is_first)
    has[static_cast<std::size_t>(mesh.data->rank()) * size + static_cast<std::size_t>(mesh.model->rank())] = 1;
  mesh.model->all_reduce_host(has);
  mesh.data->all_reduce_host(has);
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < has.size(); ++rank) {
    if (has[rank] > 0) ranks.push_back(rank);
  }
  const std::string what = first_said(mesh, is_first ? own.what : "");
  return Parting{.iteration = record.iteration,
                 .what = fmt::format("rank{} {} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), what),
                 .in_weights = first <= kPhase};
}

}  // namespace teratron
