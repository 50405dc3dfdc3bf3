// Machines that can be bought or rented, from their makers' data sheets.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace teratron {

// "dgx-2h", "p3.16xlarge", "dgx-a100", "dgx-h100", "h200".
std::vector<std::string_view> cluster_preset_names();

// So many devices of it (Cluster::resized); 0: one host. Nothing where no preset has that name.
std::optional<Cluster> find_cluster_preset(std::string_view name, std::int64_t devices = 0);

}  // namespace teratron
