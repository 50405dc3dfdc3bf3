// Schedules of random size, and random orders that are as fit to run as those of the generators.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/philox.h"
#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"

namespace teratron::testing {

using namespace pipeline;

inline int between(RandomSequence& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

inline constexpr const auto& kAllKinds = kScheduleKinds;

inline ScheduleSize random_size(RandomSequence& random, ScheduleKind kind) {
  ScheduleSize size{.stages = between(random, 1, 6), .micro_batches = between(random, 1, 9)};
  const ScheduleTraits& traits = traits_of(kind);
  if (traits.takes_slices) size.slices = between(random, 1, 6);
  if (traits.most_cells == 1) return size;
  size.virtual_stages = between(random, traits.least_cells, std::min(traits.most_cells, 4));
  // Closed forms are of full groups.
  const int group = traits.placement == Placement::kFolded ? 1 : (size.stages + size.slices - 1) / size.slices;
  size.micro_batches = group * between(random, 1, 3);
  return size;
}

// Any order at all that is fit to run: stages take turns at random, each with any pass whose inputs are at hand, what
// comes from another stage in the order in which it was sent. Backward is whole or in parts, by the toss of a coin.
class RandomSchedule {
 public:
  RandomSchedule(RandomSequence& random, const ScheduleSize& size, Placement placement) : random_(random) {
    schedule_ = {.stages = size.stages,
                 .micro_batches = size.micro_batches,
                 .slices = size.slices,
                 .slices_each = size.slices_each,
                 .virtual_stages = size.virtual_stages,
                 .placement = placement};
    schedule_.actions.resize(static_cast<std::size_t>(size.stages));
  }

  Schedule make() {
    std::size_t idle = 0;
    while (idle < 200) {  // tosses in a row that no stage could use: all is done
      const int stage = between(random_, 0, schedule_.stages - 1);
      const std::vector<Action> ready = ready_at(stage);
      idle = ready.empty() ? idle + 1 : 0;
      if (!ready.empty()) perform(stage, ready[random_.below(ready.size())]);
    }
    return schedule_;
  }

 private:
  using Key = std::tuple<int, int, int, int>;  // what, cell, micro-batch, slice
  enum { kOutput, kGradient, kWeight };
  int holder(int cell) const { return schedule_.stage_of(cell); }
  // Whether `key` is at hand at `stage`, where it comes from another stage: the first of its channel not taken yet.
  bool first_of_channel(int stage, const Key& key) {
    const auto [what, cell, m, s] = key;
    const std::vector<Key>& sent = channels_[{holder(cell), stage, what}];
    const std::size_t taken = taken_[{holder(cell), stage, what}];
    return taken < sent.size() && sent[taken] == key;
  }
  bool at_hand(int stage, const Key& key) {
    return holder(std::get<1>(key)) == stage ? done_.contains(key) : first_of_channel(stage, key);
  }

  std::vector<Action> ready_at(int stage) {
    std::vector<Action> ready;
    for (int chunk = 0; chunk < schedule_.virtual_stages; ++chunk) {
      const int cell = schedule_.cell_map().cell(stage, chunk);
      for (int m = 0; m < schedule_.micro_batches; ++m) {
        for (int s = 0; s < schedule_.slices_of(m); ++s) add_ready(stage, cell, {Pass::kForward, m, s, chunk}, ready);
      }
    }
    return ready;
  }
  void add_ready(int stage, int cell, Action action, std::vector<Action>& ready) {
    const int m = action.micro_batch, s = action.slice, last = schedule_.cells() - 1;
    if (!done_.contains({kOutput, cell, m, s})) {
      const bool context = s == 0 || done_.contains({kOutput, cell, m, s - 1});
      if (context && (cell == 0 || at_hand(stage, {kOutput, cell - 1, m, s}))) ready.push_back(action);
    } else if (!done_.contains({kGradient, cell, m, s})) {
      const bool later = s + 1 == schedule_.slices_of(m) || done_.contains({kGradient, cell, m, s + 1});
      if (later && (cell == last || at_hand(stage, {kGradient, cell + 1, m, s}))) {
        action.pass = random_.below(2) == 0 ? Pass::kBackward : Pass::kBackwardInput;
        ready.push_back(action);
      }
    } else if (!done_.contains({kWeight, cell, m, s})) {
      action.pass = Pass::kBackwardWeight;
      ready.push_back(action);
    }
  }

  void take(int stage, int what, int cell) {
    if (cell >= 0 && cell < schedule_.cells() && holder(cell) != stage) {
      ++taken_[{holder(cell), stage, what}];
    }
  }
  void bring(int stage, int what, int cell, const Action& action, int user) {
    const Key key{what, cell, action.micro_batch, action.slice};
    done_[key] = true;
    if (what != kWeight && user >= 0 && user < schedule_.cells()) {
      channels_[{stage, holder(user), what}].push_back(key);
    }
  }
  void perform(int stage, const Action& action) {
    const int cell = schedule_.cell(stage, action);
    schedule_.actions[static_cast<std::size_t>(stage)].push_back(action);
    if (action.pass == Pass::kForward) {
      take(stage, kOutput, cell - 1);
      bring(stage, kOutput, cell, action, cell + 1);
    }
    if (action.pass == Pass::kBackward || action.pass == Pass::kBackwardInput) {
      take(stage, kGradient, cell + 1);
      bring(stage, kGradient, cell, action, cell - 1);
    }
    if (action.pass == Pass::kBackward || action.pass == Pass::kBackwardWeight) {
      bring(stage, kWeight, cell, action, -1);
    }
  }

  RandomSequence& random_;
  Schedule schedule_;
  std::map<Key, bool> done_;
  std::map<std::tuple<int, int, int>, std::vector<Key>> channels_;
  std::map<std::tuple<int, int, int>, std::size_t> taken_;
};

inline Schedule random_schedule(RandomSequence& random, const ScheduleSize& size) {
  const Placement placement = random.below(2) == 0 ? Placement::kInTurns : Placement::kFolded;
  return RandomSchedule(random, size, placement).make();
}

// Micro-batches with slices of their own each.
inline void cut_unequally(RandomSequence& random, ScheduleSize& size) {
  std::vector<int> slices;
  for (int m = 0; m < size.micro_batches; ++m) slices.push_back(between(random, 1, 5));
  size.set_slices(std::move(slices));
}

// A schedule of any kind, or of no kind.
inline Schedule any_schedule(RandomSequence& random) {
  const int kinds = static_cast<int>(kAllKinds.size()), drawn = between(random, 0, kinds + 5);
  if (drawn < kinds) {
    const ScheduleKind kind = kAllKinds[static_cast<std::size_t>(drawn)];
    return make_schedule(kind, random_size(random, kind));
  }
  const int choice = drawn - kinds;
  ScheduleSize size{.stages = between(random, 1, 4),
                    .micro_batches = between(random, 1, 4),
                    .slices = between(random, 1, 4),
                    .virtual_stages = between(random, 1, 3)};
  if (choice < 3) return random_schedule(random, size);
  cut_unequally(random, size);
  if (choice == 3) return random_schedule(random, size);
  size.virtual_stages = 1;
  const Schedule first = make_schedule(ScheduleKind::kTeraPipe, size);
  if (choice == 4) return first;
  size.micro_batches = between(random, 1, 4);
  cut_unequally(random, size);
  return one_after_the_other(first, make_schedule(ScheduleKind::kSeq1F1B, size));
}

// Every cell and slice takes something of its own; transfers are still to be filled in.
inline Costs random_costs(const Schedule& schedule, RandomSequence& random) {
  Costs costs;
  for (int cell = 0; cell < schedule.cells(); ++cell) {
    costs.passes.emplace_back();
    for (int s = 0; s < schedule.slices; ++s) {
      costs.passes.back().push_back({.forward = random.uniform(),
                                     .backward = 2 * random.uniform(),
                                     .backward_input = random.uniform(),
                                     .backward_weight = random.uniform()});
    }
  }
  return costs;
}

}  // namespace teratron::testing
