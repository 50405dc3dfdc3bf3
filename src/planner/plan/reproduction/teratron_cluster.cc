#include "plan/reproduction/teratron_cluster.h"

#include <algorithm>
#include <array>

namespace teratron::plan {

Cluster run_by_teratron(Cluster cluster) {
  constexpr std::array<std::string_view, 3> kKept = {"kernel_start", "sum_efficiency", "sum_interference"};
  std::erase_if(cluster.constants,
                [&](const Constant& constant) { return std::ranges::find(kKept, constant.name) == kKept.end(); });
  return cluster;
}

}  // namespace teratron::plan
