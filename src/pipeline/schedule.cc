#include "pipeline/schedule.h"

#include <fmt/format.h>

#include "base/error.h"

namespace teratron::pipeline {
namespace {

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward";
    case Pass::kBackward: return "backward";
    case Pass::kBackwardInput: return "input gradient";
    case Pass::kBackwardWeight: return "weight gradient";
  }
  return "?";
}

}  // namespace

Schedule first_micro_batches(const Schedule& schedule, int count) {
  check(count >= 1 && count <= schedule.micro_batches, "a schedule has the micro-batches asked for");
  Schedule fewer = schedule;
  fewer.micro_batches = count;
  for (std::vector<Action>& list : fewer.actions) {
    std::erase_if(list, [&](const Action& action) { return action.micro_batch >= count; });
  }
  return fewer;
}

std::string text_of(const Schedule& schedule, const Action& action) {
  std::string text = fmt::format("{} of micro-batch {}", name_of(action.pass), action.micro_batch);
  if (schedule.slices > 1) text += fmt::format(", slice {}", action.slice);
  if (schedule.virtual_stages > 1) text += fmt::format(", chunk {}", action.chunk);
  return text;
}

}  // namespace teratron::pipeline
