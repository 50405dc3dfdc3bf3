#include "pipeline/schedule.h"

#include <fmt/format.h>

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

std::string text_of(const Schedule& schedule, const Action& action) {
  std::string text = fmt::format("{} of micro-batch {}", name_of(action.pass), action.micro_batch);
  if (schedule.slices > 1) text += fmt::format(", slice {}", action.slice);
  if (schedule.virtual_stages > 1) text += fmt::format(", chunk {}", action.chunk);
  return text;
}

}  // namespace teratron::pipeline
