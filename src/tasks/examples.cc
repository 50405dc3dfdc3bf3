#include "tasks/examples.h"

#include <algorithm>

namespace teratron {

std::int64_t TaskExamples::longest() const {
  std::int64_t most = 0;
  for (std::int64_t number = 0; number < sequences(); ++number) most = std::max(most, length(number));
  return most;
}

}  // namespace teratron
