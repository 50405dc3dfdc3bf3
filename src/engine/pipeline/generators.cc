#include "pipeline/generators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace teratron::pipeline {
namespace {

// A stage runs its forwards in one order and its backwards in another. Schedules differ in these two orders and in the
// number of forwards before a stage's first backward.
struct Orders {
  std::vector<Action> forward, backward;
};

// First `warm_up` forwards, then forward and backward in turns, then the backwards that are left.
std::vector<Action> one_forward_one_backward(const Orders& orders, std::size_t warm_up) {
  const std::size_t count = orders.forward.size();
  warm_up = std::min(warm_up, count);
  std::vector<Action> list(orders.forward.begin(), orders.forward.begin() + static_cast<std::ptrdiff_t>(warm_up));
  for (std::size_t i = 0; i < count; ++i) {
    if (warm_up + i < count) list.push_back(orders.forward[warm_up + i]);
    list.push_back(orders.backward[i]);
  }
  return list;
}

// Micro-batches first in, first out; slices first to last forward and last to first backward.
Orders slice_orders(const ScheduleSize& size) {
  Orders orders;
  for (int m = 0; m < size.micro_batches; ++m) {
    const int slices = size.slices_of(m);
    for (int s = 0; s < slices; ++s) {
      orders.forward.push_back({.pass = Pass::kForward, .micro_batch = m, .slice = s});
      orders.backward.push_back({.pass = Pass::kBackward, .micro_batch = m, .slice = slices - 1 - s});
    }
  }
  return orders;
}

// Groups of as many micro-batches as there are stages go through all of a stage's chunks before the next group does.
Orders interleaved_orders(const ScheduleSize& size) {
  Orders orders;
  for (int group = 0; group < size.micro_batches; group += size.stages) {
    for (int chunk = 0; chunk < size.virtual_stages; ++chunk) {
      for (int m = group; m < group + size.stages; ++m) {
        orders.forward.push_back({.pass = Pass::kForward, .micro_batch = m, .chunk = chunk});
        orders.backward.push_back(
            {.pass = Pass::kBackward, .micro_batch = m, .chunk = size.virtual_stages - 1 - chunk});
      }
    }
  }
  return orders;
}

// Number of forwards of stage `stage` before it alternates forwards and backwards.
int warm_up_of(ScheduleKind kind, const ScheduleSize& size, int stage) {
  const int below = size.stages - 1 - stage;  // stages after it
  switch (kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::kTeraPipe: return size.micro_batches * size.slices;
    case ScheduleKind::k1F1B: return below;
    case ScheduleKind::kInterleaved:  // with one chunk there is nothing to interleave: 1F1B
      return size.virtual_stages == 1 ? below : 2 * below + (size.virtual_stages - 1) * size.stages;
    // The slices of any micro-batch are all forward before the last of them goes back.
    case ScheduleKind::kSeq1F1B: return below + size.slices - 1;
  }
  return 0;
}

}  // namespace

const char* name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kGpipe: return "gpipe";
    case ScheduleKind::k1F1B: return "1f1b";
    case ScheduleKind::kInterleaved: return "interleaved";
    case ScheduleKind::kTeraPipe: return "terapipe";
    case ScheduleKind::kSeq1F1B: return "seq1f1b";
  }
  return "?";
}

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
  const bool sliced = kind == ScheduleKind::kTeraPipe || kind == ScheduleKind::kSeq1F1B;
  const std::string choose = flags.kind ? fmt::format("choose {}", *flags.kind) : "choose";
  if (size.slices > 1 && !sliced) {
    const std::string given = flags.slices_as_given.empty() ? fmt::format("{}", size.slices) : flags.slices_as_given;
    faults.add("{} is {}, but schedule {} runs sequences whole; {} terapipe or seq1f1b", flags.slices, given,
               name_of(kind), choose);
  }
  if (kind != ScheduleKind::kInterleaved && size.virtual_stages > 1) {
    faults.add("{} is {}, but schedule {} has one cell a stage; {} interleaved", flags.virtual_stages,
               size.virtual_stages, name_of(kind), choose);
  }
  if (kind == ScheduleKind::kInterleaved && size.micro_batches % size.stages != 0) {
    const int below = size.micro_batches / size.stages * size.stages;
    faults.add("{} is {}, and schedule interleaved needs a multiple of the {} stages; nearest {}: {}",
               flags.micro_batches, size.micro_batches, size.stages, below > 0 ? "are" : "is",
               below > 0 ? fmt::format("{} and {}", below, below + size.stages) : fmt::format("{}", size.stages));
  }
  return faults;
}

Schedule make_schedule(ScheduleKind kind, const ScheduleSize& size) {
  const Faults faults = size_faults(kind, size);
  if (!faults.empty()) throw_user_error("{}", fmt::join(faults.texts(), "\n"));
  Schedule schedule{.stages = size.stages,
                    .micro_batches = size.micro_batches,
                    .slices = size.slices,
                    .slices_each = size.slices_each,
                    .virtual_stages = size.virtual_stages};
  const Orders orders = kind == ScheduleKind::kInterleaved ? interleaved_orders(size) : slice_orders(size);
  for (int stage = 0; stage < size.stages; ++stage) {
    schedule.actions.push_back(
        one_forward_one_backward(orders, static_cast<std::size_t>(warm_up_of(kind, size, stage))));
  }
  return schedule;
}

}  // namespace teratron::pipeline
