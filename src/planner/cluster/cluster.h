// Machines and the links between them, as a planner sees them: what a cluster file (TOML) says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/faults.h"

namespace teratron {

constexpr std::int64_t kMostDevices = 1 << 16;  // of a cluster

struct Device {
  std::string name;             // "V100-SXM3-32GB"
  double memory = 0;            // bytes that a rank may take
  double peak_16 = 0;           // operations a second of matrix products of 16-bit numbers with fp32 sums; a
                                // multiply-add is two
  double peak_32 = 0;           // of fp32 numbers
  double memory_bandwidth = 0;  // bytes a second
  double peak_8 = 0;            // of 8-bit floating-point numbers; 0: it has no such products
  double watts = 0;             // of the board at full load; 0: not known
  std::string backend{};        // that measured it: "cpu" or "cuda"; empty: not known
  bool operator==(const Device&) const = default;
};

// Links that join runs of `devices` consecutive devices, in groups of the level before (single devices at the first).
struct LinkLevel {
  std::string name;          // "NVSwitch", "InfiniBand"
  std::int64_t devices = 0;  // that it joins; of the last level, all of the cluster
  double bandwidth = 0;      // bytes a second and direction that a port carries, what protocols take already off
  bool is_shared = false;    // a port for each group of the level before (a host's network); else one for each device
  double latency = 0;        // seconds of a message
  std::string from;          // where the numbers come from: "data sheet", "fitted to ..", ..
  bool operator==(const LinkLevel&) const = default;
};

// A constant of the cost model that no data sheet has (plan/costs/layer_costs.h lists their names).
struct Constant {
  std::string name;
  double value = 0;
  std::string from;  // where it comes from: "fitted to ..", "measured by teratron profile", ..
  bool operator==(const Constant&) const = default;
};

struct Cluster {
  std::string name;
  std::int64_t devices = 1;
  Device device;
  std::vector<LinkLevel> links;     // innermost first; none where there is one device
  std::vector<Constant> constants;  // what is missing has its default

  // The index of the innermost level that joins two devices; of the first one for a device and itself. InternalError
  // where there is no link.
  std::size_t level_between(std::int64_t a, std::int64_t b) const;
  // Devices that share a port of that level: 1, or what the level before joins where the port is shared.
  std::int64_t devices_of_port(std::size_t level) const;

  // A cluster of the same machines with so many devices: the innermost levels that it needs, the last one cut or
  // enlarged to size. UserError: the last group would not be full, or one host would have more devices than it has.
  Cluster resized(std::int64_t devices) const;

  // All impossible values.
  Faults faults() const;
  bool operator==(const Cluster&) const = default;
};

}  // namespace teratron
