// Machines that can be bought or rented, from their makers' data sheets.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace teratron {

// Names of the presets, "dgx-h100" among them.
std::vector<std::string_view> cluster_preset_names();

// The preset of this name with `devices` devices (Cluster::resized; 0: one host); nullopt: there is none. UserError: as
// resized().
std::optional<Cluster> find_cluster_preset(std::string_view name, std::int64_t devices = 0);

}  // namespace teratron
