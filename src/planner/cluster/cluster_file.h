// Clusters as TOML files, and presets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "cluster/cluster.h"

namespace teratron {

// A file has these keys, each on a line of its own; times are seconds, sizes bytes. `from`, and peak_8, watts and
// backend of the device, may be left out:
//   name = "two hosts"
//   devices = 16
//   [device]
//   name = "H100"   memory = 8.4e10   peak_16 = 9.894e14   peak_32 = 6.7e13   memory_bandwidth = 3.35e12
//   peak_8 = 1.979e15   watts = 700   backend = "cuda"
//   [[link]]        # innermost first; none where there is one device
//   name = "NVLink"   devices = 8   bandwidth = 4.5e11   shared = false   latency = 3e-6   from = "data sheet"
//   [[constant]]    # of plan/costs/layer_costs.h, in place of their defaults; may be absent
//   name = "product_efficiency"   value = 0.8   from = "measured"

// UserError lists every fault of the text, with its line where it has one. `path`: for messages.
Cluster cluster_from_toml(std::string_view text, const std::filesystem::path& path);
std::string to_toml(const Cluster& cluster);  // reads back exactly

// The machine at hand, as `teratron profile --cluster this-machine` measured it, and where that is kept; empty where
// the user has no cache.
constexpr std::string_view kThisMachine = "this-machine";
std::filesystem::path this_machine_file();

// A preset's name (cluster/presets.h), kThisMachine, or the path of a cluster file. `devices`: of how many
// (Cluster::resized); 0: as many as it says. UserError lists the faults of the file, says what presets there are, or
// how to measure the machine.
Cluster find_cluster(const std::string& name_or_file, std::int64_t devices = 0);

}  // namespace teratron
