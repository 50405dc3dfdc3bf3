// The names of all commands, as the registry of cli/ lists them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "corpus/chain.h"
#include "tasks/task.h"

namespace teratron::testing {

// Names of the commands of `family`.
inline std::vector<std::string> members_of_family(std::string_view family) {
  std::vector<std::string> names;
  if (family == "eval_task" || family == "score") {
    for (const TaskKind task : all_tasks()) {
      names.push_back(fmt::format("{} {}", family == "score" ? "score" : "eval", name_of(task)));
    }
  } else if (family == "data_stage") {
    for (const StageText& stage : all_stages()) names.push_back(fmt::format("data {}", stage.name));
  } else {
    throw std::runtime_error(fmt::format("say here what commands {} has", family));
  }
  return names;
}

inline std::vector<std::string> registered_commands() {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    const std::size_t end = name.find('_');
    if (end != std::string::npos && name != "fill_mask") name[end] = ' ';
    std::ranges::replace(name, '_', '-');  // those behind the first
    names.push_back(std::move(name));
  };
  const auto add_each = [&](std::string_view family) {
    for (const std::string& name : members_of_family(family)) names.push_back(name);
  };
#define TERATRON_NAME_ONE(name) add(#name);
#define TERATRON_NAME_EACH(name) add_each(#name);
  TERATRON_COMMANDS(TERATRON_NAME_ONE, TERATRON_NAME_EACH)
#undef TERATRON_NAME_ONE
#undef TERATRON_NAME_EACH
  return names;
}

}  // namespace teratron::testing
