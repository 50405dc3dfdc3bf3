#include "pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace teratron::pipeline {

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward";
    case Pass::kBackward: return "backward";
    case Pass::kBackwardInput: return "input gradient";
    case Pass::kBackwardWeight: return "weight gradient";
    case Pass::kEmbedding: return "embedding";
    case Pass::kHead: return "head";
    case Pass::kEmbeddingBackward: return "embedding's backward";
  }
  return "?";
}

void Schedule::set_slices(std::vector<int> of_micro_batches) {
  slices = *std::ranges::max_element(of_micro_batches);
  const bool differ = *std::ranges::min_element(of_micro_batches) < slices;
  slices_each = differ ? std::move(of_micro_batches) : std::vector<int>();
}

std::int64_t MicroBatchCut::tokens() const {
  return std::accumulate(slice_tokens.begin(), slice_tokens.end(), std::int64_t{0});
}

const MicroBatchCut& cut_of(std::span<const MicroBatchCut> cuts, int micro_batch) {
  return cuts[std::min(static_cast<std::size_t>(micro_batch), cuts.size() - 1)];
}

std::size_t Schedule::forwards_per_stage() const {
  const std::size_t of_chunk = slices_each.empty()
                                   ? static_cast<std::size_t>(micro_batches) * static_cast<std::size_t>(slices)
                                   : std::accumulate(slices_each.begin(), slices_each.end(), std::size_t{0});
  return of_chunk * static_cast<std::size_t>(virtual_stages);
}

Schedule first_micro_batches(const Schedule& schedule, int count) {
  check(count >= 1 && count <= schedule.micro_batches, "a schedule has the micro-batches asked for");
  Schedule fewer = schedule;
  fewer.micro_batches = count;
  if (!fewer.slices_each.empty()) {
    fewer.set_slices({schedule.slices_each.begin(), schedule.slices_each.begin() + count});
  }
  for (std::vector<Action>& list : fewer.actions) {
    std::erase_if(list, [&](const Action& action) { return action.micro_batch >= count; });
  }
  return fewer;
}

Schedule one_after_the_other(const Schedule& first, const Schedule& second) {
  check(first.stages == second.stages && first.virtual_stages == second.virtual_stages &&
            first.placement == second.placement && first.vocabulary_parallel == second.vocabulary_parallel,
        "schedules that follow each other have the same cells");
  Schedule both = first;
  both.micro_batches += second.micro_batches;
  std::vector<int> slices;
  for (const Schedule* part : {&first, &second}) {
    for (int m = 0; m < part->micro_batches; ++m) slices.push_back(part->slices_of(m));
  }
  both.set_slices(std::move(slices));
  for (std::size_t stage = 0; stage < both.actions.size(); ++stage) {
    for (Action action : second.actions[stage]) {
      action.micro_batch += first.micro_batches;
      both.actions[stage].push_back(action);
    }
  }
  return both;
}

std::string text_of(const Schedule& schedule, const Action& action) {
  std::string text = fmt::format("{} of micro-batch {}", name_of(action.pass), action.micro_batch);
  if (schedule.slices > 1) text += fmt::format(", slice {}", action.slice);
  if (schedule.virtual_stages > 1) text += fmt::format(", chunk {}", action.chunk);
  return text;
}

}  // namespace teratron::pipeline
