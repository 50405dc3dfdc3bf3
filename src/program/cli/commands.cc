#include "cli/commands.h"

#include <algorithm>
#include <iterator>

namespace teratron {

std::vector<Command> all_commands() {
  std::vector<Command> all;
#define TERATRON_ADD_ONE(name) all.push_back(name##_command());
#define TERATRON_ADD_EACH(name) std::ranges::move(name##_commands(), std::back_inserter(all));
  TERATRON_COMMANDS(TERATRON_ADD_ONE, TERATRON_ADD_EACH)
#undef TERATRON_ADD_ONE
#undef TERATRON_ADD_EACH
  return all;
}

}  // namespace teratron
