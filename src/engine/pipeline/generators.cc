#include "pipeline/generators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "pipeline/v_schedules.h"
#include "pipeline/vocabulary_passes.h"

namespace teratron::pipeline {
namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max();

constexpr ScheduleTraits in_a_v(const char* name) {
  return {.name = name, .takes_slices = true, .least_cells = 2, .most_cells = 2, .placement = Placement::kFolded};
}

// Traits of each kind, in the order of ScheduleKind.
constexpr std::array kTraits = {
    ScheduleTraits{.name = "gpipe", .holds_all = true},
    ScheduleTraits{.name = "1f1b"},
    ScheduleTraits{.name = "interleaved", .most_cells = kAnyNumber, .fills_groups = true},
    ScheduleTraits{.name = "terapipe", .takes_slices = true, .holds_all = true},
    ScheduleTraits{.name = "seq1f1b", .takes_slices = true},
    ScheduleTraits{.name = "seq1f1b-i", .takes_slices = true, .most_cells = kAnyNumber},
    in_a_v("v-min"),
    in_a_v("v-half"),
    in_a_v("v-zb"),
};
static_assert(kTraits.size() == kScheduleKinds.size());

// A pass with its number in the order of all passes of its direction.
struct Numbered {
  std::size_t number = 0;
  Action action;
};

// Orders of the forwards and of the backwards, the same on all stages. Schedules differ in how many forwards a stage
// runs ahead of its backwards.
struct Orders {
  std::vector<Numbered> forward, backward;
};

// Micro-batches first in, first out; slices first to last forward and last to first backward. Groups of whole
// micro-batches go through all of a stage's chunks before the next group does. A group has at least as many slices as
// there are stages: when the first stage is done with its last slice, the last stage has the first slice's result for
// the next chunk. Where the last group has fewer, numbers are left out for those that are missing: without that, stages
// could wait for one another for ever.
Orders orders_of(const ScheduleSize& size) {
  Orders orders;
  std::size_t number = 0;
  for (int group = 0, next = 0; group < size.micro_batches; group = next) {
    int in_group = 0;  // slices
    for (; next < size.micro_batches && in_group < size.stages; ++next) in_group += size.slices_of(next);
    for (int chunk = 0; chunk < size.virtual_stages; ++chunk) {
      for (int m = group; m < next; ++m) {
        const int slices = size.slices_of(m), last_chunk = size.virtual_stages - 1;
        for (int s = 0; s < slices; ++s, ++number) {
          orders.forward.push_back({number, {.pass = Pass::kForward, .micro_batch = m, .slice = s, .chunk = chunk}});
          orders.backward.push_back(
              {number,
               {.pass = Pass::kBackward, .micro_batch = m, .slice = slices - 1 - s, .chunk = last_chunk - chunk}});
        }
      }
      number += static_cast<std::size_t>(std::max(0, size.stages - in_group));
    }
  }
  return orders;
}

// Forwards that the last stage must run ahead of its backwards. It is the stage that needs the fewest, since it waits
// for no gradient of another stage.
std::size_t least_lead(const ScheduleSize& size, const Orders& orders) {
  const auto place_of = [&](const Action& action) {
    const auto whole = [](int value) { return static_cast<std::size_t>(value); };
    return (whole(action.micro_batch) * whole(size.slices) + whole(action.slice)) * whole(size.virtual_stages) +
           whole(action.chunk);
  };
  std::vector<std::size_t> forward_numbers(place_of({.micro_batch = size.micro_batches}));
  for (const Numbered& forward : orders.forward) forward_numbers[place_of(forward.action)] = forward.number;
  std::size_t lead = 0;
  for (const Numbered& backward : orders.backward) {
    const std::size_t needed = forward_numbers[place_of(backward.action)];
    if (needed > backward.number) lead = std::max(lead, needed - backward.number);
  }
  return lead;
}

// First `lead` forwards, then forward and backward in turns, then the backwards that are left.
std::vector<Action> one_forward_one_backward(const Orders& orders, std::size_t lead) {
  std::vector<Action> list;
  auto next = orders.forward.begin();
  for (const Numbered& backward : orders.backward) {
    for (; next != orders.forward.end() && next->number <= backward.number + lead; ++next) {
      list.push_back(next->action);
    }
    list.push_back(backward.action);
  }
  return list;
}

std::vector<std::vector<Action>> actions_in_turns(const ScheduleTraits& traits, const ScheduleSize& size) {
  const Orders orders = orders_of(size);
  const std::size_t lead = traits.holds_all ? orders.forward.back().number : least_lead(size, orders);
  // Stages take turns twice as far apart where chunks follow one another without a pause (Megatron-LM).
  const int apart = size.virtual_stages > 1 ? 2 : 1;
  std::vector<std::vector<Action>> lists;
  for (int stage = 0; stage < size.stages; ++stage) {
    const int below = size.stages - 1 - stage;  // stages after it
    const bool makes_room = size.vocabulary_parallel && size.virtual_stages == 1;
    const int ahead = apart * below + (makes_room ? vocabulary_lead(below) : 0);
    lists.push_back(one_forward_one_backward(orders, lead + static_cast<std::size_t>(ahead)));
  }
  return lists;
}

bool can_run(const ScheduleTraits& traits, const ScheduleSize& size) {
  return (size.slices == 1 || traits.takes_slices) && traits.has_cells(size.virtual_stages);
}

// "a, b or c": the kinds that can have this number of slices and cells.
std::string kinds_for(const ScheduleSize& size) {
  std::vector<std::string> names;
  for (const ScheduleKind kind : kScheduleKinds) {
    const ScheduleTraits& traits = traits_of(kind);
    const bool is_interleaved = traits.most_cells > 1;
    if (can_run(traits, size) && is_interleaved == (size.virtual_stages > 1)) names.emplace_back(traits.name);
  }
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

void add_micro_batch_faults(const char* name, const ScheduleSize& size, const ScheduleFlags& flags, Faults& faults) {
  if (size.micro_batches % size.stages == 0) return;
  const int below = size.micro_batches / size.stages * size.stages;
  faults.add("{} is {}, and schedule {} needs a multiple of the {} stages; nearest {}: {}", flags.micro_batches,
             size.micro_batches, name, size.stages, below > 0 ? "are" : "is",
             below > 0 ? fmt::format("{} and {}", below, below + size.stages) : fmt::format("{}", size.stages));
}

}  // namespace

const ScheduleTraits& traits_of(ScheduleKind kind) { return kTraits[static_cast<std::size_t>(kind)]; }

void ScheduleSize::set_slices(std::vector<int> of_micro_batches) {
  Schedule cut;
  cut.set_slices(std::move(of_micro_batches));
  slices = cut.slices;
  slices_each = std::move(cut.slices_each);
}

Faults size_faults(ScheduleKind kind, const ScheduleSize& size, const ScheduleFlags& flags) {
  Faults faults;
  faults.need_between(flags.stages, size.stages, 1);
  faults.need_between(flags.micro_batches, size.micro_batches, 1);
  faults.need_between(flags.slices, size.slices, 1);
  faults.need_between(flags.virtual_stages, size.virtual_stages, 1);
  if (!faults.empty()) return faults;
  const ScheduleTraits& traits = traits_of(kind);
  const std::string others =
      fmt::format("choose {}{}", flags.kind ? fmt::format("{} ", *flags.kind) : "", kinds_for(size));
  if (size.slices > 1 && !traits.takes_slices) {
    const std::string given = flags.slices_as_given.empty() ? fmt::format("{}", size.slices) : flags.slices_as_given;
    faults.add("{} is {}, but schedule {} runs sequences whole; {}", flags.slices, given, traits.name, others);
  }
  if (size.virtual_stages > traits.most_cells || size.virtual_stages < traits.least_cells) {
    const bool two = traits.least_cells == 2;
    faults.add("{} is {}, but schedule {} has {} a stage; {}{}", flags.virtual_stages, size.virtual_stages, traits.name,
               two ? "two cells" : "one cell", two ? "give 2, or " : "", others);
  }
  if (traits.fills_groups) add_micro_batch_faults(traits.name, size, flags, faults);
  return faults;
}

double count_actions(const ScheduleSize& size) {
  const double passes = 3.0 * size.virtual_stages + (size.vocabulary_parallel ? 3 : 0);
  return passes * size.stages * size.micro_batches * size.slices;
}

Schedule make_schedule(ScheduleKind kind, const ScheduleSize& size) {
  const Faults faults = size_faults(kind, size);
  if (!faults.empty()) throw_user_error("{}", fmt::join(faults.texts(), "\n"));
  const ScheduleTraits& traits = traits_of(kind);
  return {.stages = size.stages,
          .micro_batches = size.micro_batches,
          .slices = size.slices,
          .slices_each = size.slices_each,
          .virtual_stages = size.virtual_stages,
          .placement = traits.placement,
          .actions =
              traits.placement == Placement::kFolded ? v_actions(v_steps(kind), size) : actions_in_turns(traits, size)};
}

}  // namespace teratron::pipeline
