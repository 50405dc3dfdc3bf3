#include "options/faults.h"

#include <fmt/format.h>

namespace teratron {

void need_between(std::vector<std::string>& faults, std::string_view flag, std::int64_t value, std::int64_t least,
                  std::int64_t most) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("--{} is {}; it must be from {} to {}", flag, value, least, most));
}

}  // namespace teratron
