#include "pipeline/checker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.h"
#include "pipeline/dependencies.h"
#include "pipeline/memory.h"

namespace teratron::pipeline {
namespace {

using Lines = std::vector<std::string>;

Lines size_faults(const Schedule& schedule) {
  Lines faults;
  if (schedule.stages < 1 || schedule.micro_batches < 1 || schedule.slices < 1 || schedule.virtual_stages < 1) {
    faults.push_back(fmt::format("a schedule of {} stages, {} micro-batches, {} slices and {} virtual stages is empty",
                                 schedule.stages, schedule.micro_batches, schedule.slices, schedule.virtual_stages));
    return faults;
  }
  const std::vector<int>& each = schedule.slices_each;
  if (!each.empty() && (each.size() != static_cast<std::size_t>(schedule.micro_batches) || std::ranges::min(each) < 1 ||
                        std::ranges::max(each) != schedule.slices)) {
    faults.push_back(fmt::format("the slices of {} micro-batches are [{}], {} at most", schedule.micro_batches,
                                 fmt::join(each, ", "), schedule.slices));
    return faults;
  }
  if (schedule.actions.size() != static_cast<std::size_t>(schedule.stages)) {
    faults.push_back(fmt::format("there are lists for {} stages of {}", schedule.actions.size(), schedule.stages));
    return faults;
  }
  const auto within = [](int value, int count) { return value >= 0 && value < count; };
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (const Action& action : schedule.actions[static_cast<std::size_t>(stage)]) {
      if (!within(action.micro_batch, schedule.micro_batches) ||
          !within(action.slice, schedule.slices_of(action.micro_batch)) ||
          !within(action.chunk, schedule.virtual_stages)) {
        faults.push_back(fmt::format("stage {}: {} (slice {}, chunk {}) does not exist", stage,
                                     text_of(schedule, action), action.slice, action.chunk));
      }
    }
  }
  return faults;
}

// Counts of each pass of one slice of one micro-batch in one chunk.
using Counts = std::array<int, kPasses>;

void add_count_faults(const Schedule& schedule, int stage, Action action, const Counts& counts, Lines& faults) {
  const auto add_fault = [&](Pass pass, int count) {
    action.pass = pass;
    if (count == 0) faults.push_back(fmt::format("stage {}: {} is missing", stage, text_of(schedule, action)));
    if (count > 1) {
      faults.push_back(fmt::format("stage {}: {} is there {} times", stage, text_of(schedule, action), count));
    }
  };
  const auto of = [&](Pass pass) { return counts[static_cast<std::size_t>(pass)]; };
  add_fault(Pass::kForward, of(Pass::kForward));
  const bool in_parts = of(Pass::kBackwardInput) + of(Pass::kBackwardWeight) > 0;
  if (in_parts && of(Pass::kBackward) > 0) {
    action.pass = Pass::kBackward;
    faults.push_back(fmt::format("stage {}: {} is there whole and in parts", stage, text_of(schedule, action)));
  } else if (in_parts) {
    add_fault(Pass::kBackwardInput, of(Pass::kBackwardInput));
    add_fault(Pass::kBackwardWeight, of(Pass::kBackwardWeight));
  } else {
    add_fault(Pass::kBackward, of(Pass::kBackward));
  }
  // Passes of the vocabulary belong to one end of the model each, and to no other cell.
  const bool at_begin = action.chunk == 0, at_end = action.chunk + 1 == schedule.virtual_stages;
  for (const auto& [pass, is_end] :
       {std::pair{Pass::kEmbedding, at_begin}, {Pass::kHead, at_end}, {Pass::kEmbeddingBackward, at_begin}}) {
    if (schedule.vocabulary_parallel && is_end) {
      add_fault(pass, of(pass));
    } else if (of(pass) > 0) {
      action.pass = pass;
      faults.push_back(fmt::format("stage {}: {} has no place", stage, text_of(schedule, action)));
    }
  }
}

Lines completeness_faults(const Schedule& schedule) {
  Lines faults;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto index = [&](const Action& a) {
      return static_cast<std::size_t>((a.micro_batch * schedule.slices + a.slice) * schedule.virtual_stages + a.chunk);
    };
    const int most = schedule.micro_batches * schedule.slices * schedule.virtual_stages;
    std::vector<Counts> counts(static_cast<std::size_t>(most), Counts{});
    for (const Action& action : schedule.actions[static_cast<std::size_t>(stage)]) {
      ++counts[index(action)][static_cast<std::size_t>(action.pass)];
    }
    Action action;
    for (action.micro_batch = 0; action.micro_batch < schedule.micro_batches; ++action.micro_batch) {
      for (action.slice = 0; action.slice < schedule.slices_of(action.micro_batch); ++action.slice) {
        for (action.chunk = 0; action.chunk < schedule.virtual_stages; ++action.chunk) {
          add_count_faults(schedule, stage, action, counts[index(action)], faults);
        }
      }
    }
  }
  return faults;
}

// The event in words, as an action of the stage that brings it about.
std::string text_of(const Schedule& schedule, const Event& event) {
  constexpr std::array<const char*, kOutcomes> kWords = {
      "the output",    "the input's gradient", "the weights' gradient",
      "the embedding", "the loss's gradient",  "the table's gradient"};
  const Action action{.micro_batch = event.micro_batch, .slice = event.slice, .chunk = event.cell / schedule.stages};
  const std::string indices = text_of(schedule, action).substr(std::string_view("forward").size());
  return std::string(kWords[static_cast<std::size_t>(event.outcome)]) + indices;
}

// Actions that come before a result of their own stage that they need.
Lines order_faults(const Schedule& schedule) {
  Lines faults;
  std::vector<char> happened(events(schedule), 0);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (const Action& action : schedule.actions[static_cast<std::size_t>(stage)]) {
      for_each_need(schedule, stage, action, [&](const Event& need) {
        if (schedule.stage_of(need.cell) != stage || happened[number_of(schedule, need)] != 0) return;
        faults.push_back(fmt::format("stage {}: {} comes before {}, which it needs", stage, text_of(schedule, action),
                                     text_of(schedule, need)));
      });
      for_each_result(schedule, stage, action, [&](const Event& event) { happened[number_of(schedule, event)] = 1; });
    }
  }
  return faults;
}

// Messages from one stage to another in one direction, in the order of the sender or of the receiver.
struct Channel {
  int from = 0, to = 0;
  Outcome outcome = Outcome::kOutput;
  auto operator<=>(const Channel&) const = default;
};
using Transfers = std::map<Channel, std::vector<Event>>;

Lines channel_faults(const Schedule& schedule) {
  Transfers sent, received;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (const Action& action : schedule.actions[static_cast<std::size_t>(stage)]) {
      for_each_need(schedule, stage, action, [&](const Event& need) {
        const int from = schedule.stage_of(need.cell);
        if (from != stage) received[{from, stage, need.outcome}].push_back(need);
      });
      for_each_result(schedule, stage, action, [&](const Event& event) {
        const int user = event.cell + (event.outcome == Outcome::kOutput ? 1 : -1);
        if (!is_sent(event.outcome) || user < 0 || user >= schedule.cells()) return;
        const int to = schedule.stage_of(user);
        if (to != stage) sent[{stage, to, event.outcome}].push_back(event);
      });
    }
  }
  Lines faults;
  for (const auto& [channel, events_sent] : sent) {
    const std::vector<Event>& events_received = received[channel];
    for (std::size_t i = 0; i < events_sent.size(); ++i) {
      if (events_sent[i] == events_received[i]) continue;
      faults.push_back(fmt::format("stage {}: it takes {} from stage {} where {} arrives", channel.to,
                                   text_of(schedule, events_received[i]), channel.from,
                                   text_of(schedule, events_sent[i])));
      break;
    }
  }
  return faults;
}

Lines deadlock_faults(const Schedule& schedule) {
  const std::vector<std::size_t> progress = play(schedule, [](int, std::size_t) {});
  std::vector<char> happened(events(schedule), 0);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    for (std::size_t i = 0; i < progress[at]; ++i) {
      for_each_result(schedule, stage, schedule.actions[at][i],
                      [&](const Event& event) { happened[number_of(schedule, event)] = 1; });
    }
  }
  Lines faults;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(stage)];
    const std::size_t next = progress[static_cast<std::size_t>(stage)];
    if (next == list.size()) continue;
    if (is_joint(list[next].pass)) {
      faults.push_back(
          fmt::format("stage {}: {} waits for ever for the other stages", stage, text_of(schedule, list[next])));
    }
    for_each_need(schedule, stage, list[next], [&](const Event& need) {
      if (happened[number_of(schedule, need)] != 0) return;
      faults.push_back(fmt::format("stage {}: {} waits for ever for {} of stage {}", stage,
                                   text_of(schedule, list[next]), text_of(schedule, need),
                                   schedule.stage_of(need.cell)));
    });
  }
  return faults;
}

Lines memory_faults(const Schedule& schedule, std::int64_t most_slices) {
  Lines faults;
  std::vector<MemoryPeak> peaks = memory_peaks(schedule);
  for (std::size_t stage = 0; stage < peaks.size(); ++stage) {
    if (peaks[stage].slices <= most_slices) continue;
    std::int64_t alive = 0;
    for (const Action& action : schedule.actions[stage]) {
      alive += action.pass == Pass::kForward ? 1 : makes_weight_gradient(action.pass) ? -1 : 0;
      if (alive <= most_slices) continue;
      faults.push_back(fmt::format("stage {}: with {} it holds {} live activations; the bound is {}", stage,
                                   text_of(schedule, action), alive, most_slices));
      break;
    }
  }
  return faults;
}

}  // namespace

std::vector<std::string> schedule_faults(const Schedule& schedule, std::optional<std::int64_t> most_slices) {
  Lines faults = size_faults(schedule);
  if (faults.empty()) faults = completeness_faults(schedule);
  if (!faults.empty()) return faults;  // the other checks take complete lists
  for (const auto& more : {order_faults(schedule), deadlock_faults(schedule), channel_faults(schedule)}) {
    faults.insert(faults.end(), more.begin(), more.end());
  }
  if (most_slices) {
    const Lines more = memory_faults(schedule, *most_slices);
    faults.insert(faults.end(), more.begin(), more.end());
  }
  return faults;
}

void check_schedule(const Schedule& schedule, std::optional<std::int64_t> most_slices) {
  const Lines faults = schedule_faults(schedule, most_slices);
  check(faults.empty(), fmt::format("the schedule is fit to run: {}", fmt::join(faults, "; ")));
}

}  // namespace teratron::pipeline
