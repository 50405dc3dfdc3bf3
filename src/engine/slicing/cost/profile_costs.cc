#include "slicing/cost/profile_costs.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/error.h"

namespace teratron::slicing {
namespace {

using pipeline::PassTimes;

// Messages of a slice's hidden states that a stage waits for in a joint pass: a sum over stages comes to two.
constexpr double kLookUpMessages = 2, kHeadMessages = 3, kLookUpBackwardMessages = 1;

// Numbers of "6,6"; empty: not such a list.
std::vector<std::int64_t> layers_of_stages(const std::string& text) {
  std::vector<std::int64_t> layers;
  for (const char *begin = text.data(), *end = begin + text.size(); begin <= end;) {
    const auto [stop, error] = std::from_chars(begin, end, layers.emplace_back());
    if (error != std::errc() || layers.back() < 1 || (stop != end && *stop != ',')) return {};
    begin = stop + 1;
  }
  return layers;
}

PassTimes less(const PassTimes& whole, const PassTimes& part) {
  return {.backward = std::max(0.0, whole.backward - part.backward),
          .backward_input = std::max(0.0, whole.backward_input - part.backward_input),
          .backward_weight = std::max(0.0, whole.backward_weight - part.backward_weight)};
}

}  // namespace

ProfileCosts::ProfileCosts(const Profile& profile, int stages, CellWork work)
    : profile_(profile), stages_(stages), work_(std::move(work)) {
  measured_layers_ = layers_of_stages(profile.key.cell_layers);
  if (profile.stages.size() < 2 || measured_layers_.size() != profile.stages.size()) measured_layers_.clear();
}

std::size_t ProfileCosts::measured(int stage) const {
  const auto last = static_cast<std::size_t>(stages_ - 1);
  return last == 0 ? 0 : (static_cast<std::size_t>(stage) * (profile_.stages.size() - 1) + last / 2) / last;
}

PassTimes ProfileCosts::passes(int stage, const TokenSlice& slice) const {
  const double size = static_cast<double>(slice.sequences) / static_cast<double>(profile_.key.sequences);
  return profile_.stages[measured(stage)].times(slice.length, slice.context).times(size);
}

PassTimes ProfileCosts::layer(int stage, const TokenSlice& slice) const {
  const double layers = static_cast<double>(measured_layers_[measured(stage)]);
  const PassTimes times = passes(stage, slice).times(1 / layers);
  if (measured(stage) + 1 < profile_.stages.size()) return times;
  PassTimes others;
  for (std::size_t other = 0; other + 1 < profile_.stages.size(); ++other) {
    others = others.plus(profile_.stages[other].times(slice.length, slice.context));
  }
  return others.times(times.forward / others.forward);
}

PassTimes ProfileCosts::head(const TokenSlice& slice) const {
  return less(passes(stages_ - 1, slice),
              layer(stages_ - 1, slice).times(static_cast<double>(measured_layers_.back())));
}

PassTimes ProfileCosts::joint_ends(const TokenSlice& slice) const {
  const double once = message(slice);
  return {.embedding = kLookUpMessages * once,
          .head = head(slice).backward / stages_ + kHeadMessages * once,
          .embedding_backward = kLookUpBackwardMessages * once};
}

PassTimes ProfileCosts::cell_passes(const pipeline::Schedule& schedule, int cell, const TokenSlice& slice) const {
  if (work_.layers.empty() || !knows_layers()) {
    return passes(schedule.stage_of(cell), slice).times(1.0 / schedule.virtual_stages);
  }
  const auto layers = static_cast<double>(work_.layers[static_cast<std::size_t>(cell)]);
  const PassTimes times = layer(schedule.stage_of(cell), slice).times(layers);
  if (work_.vocabulary_parallel) return times.plus(joint_ends(slice));
  return cell + 1 == schedule.cells() ? times.plus(head(slice)) : times;
}

CostTable slowest_stage(const ProfileCosts& costs, std::int64_t sequences, std::int64_t tokens,
                        std::int64_t granularity) {
  return {tokens, granularity, [&](std::int64_t length, std::int64_t context) {
            const TokenSlice slice{.sequences = sequences, .length = length, .context = context};
            double most = 0;
            for (int stage = 0; stage < costs.stages(); ++stage) {
              const pipeline::PassTimes times = costs.passes(stage, slice);
              most = std::max(most, times.forward + times.backward);
            }
            return most + costs.message(slice);
          }};
}

pipeline::Costs schedule_costs(const ProfileCosts& costs, const pipeline::Schedule& schedule,
                               std::span<const pipeline::MicroBatchCut> cuts) {
  check_equal(costs.stages(), schedule.stages, "stages of known costs");
  pipeline::Costs all;
  all.passes.resize(static_cast<std::size_t>(schedule.cells()));
  for (std::size_t m = 0; m < cuts.size(); ++m) {
    const pipeline::MicroBatchCut& cut = cuts[m];
    check_equal(std::ssize(cut.slice_tokens), schedule.slices_of(static_cast<int>(m)), "slices of a known length");
    if (cuts.size() > 1) all.first_columns.push_back(all.transfers.size());
    TokenSlice slice{.sequences = cut.sequences};
    for (const std::int64_t length : cut.slice_tokens) {
      slice.length = length;
      for (int cell = 0; cell < schedule.cells(); ++cell) {
        all.passes[static_cast<std::size_t>(cell)].push_back(costs.cell_passes(schedule, cell, slice));
      }
      all.transfers.push_back(costs.message(slice));
      slice.context += length;
    }
  }
  return all;
}

}  // namespace teratron::slicing
