#include "cluster/cluster.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "options/reading.h"

namespace teratron {
namespace {

// Bounds within which times stay finite and bytes stay integers.
constexpr double kLeast = 1e-12, kMost = 1e24, kMostBytes = 1e18;

void need_positive(Faults& faults, std::string_view what, double value, double most = kMost) {
  faults.add_if(!(value >= kLeast && value <= most), "{} is {}; it must be from {} to {}", what, value, kLeast, most);
}

void add_link_faults(Faults& faults, const Cluster& cluster, std::size_t level) {
  const LinkLevel& link = cluster.links[level];
  const std::string name = fmt::format("link {} ('{}')", level + 1, shortened(link.name));
  need_positive(faults, fmt::format("bandwidth of {}", name), link.bandwidth);
  faults.add_if(!(link.latency >= 0 && link.latency <= kMost), "latency of {} is {}; it must be from 0 to {}", name,
                link.latency, kMost);
  const std::int64_t before = level == 0 ? 1 : cluster.links[level - 1].devices;
  if (link.devices <= before) {
    faults.add("{} joins {} devices; it must be more than the {} that what is inside it joins", name, link.devices,
               before);
  } else if (before > 0 && link.devices % before != 0) {
    faults.add("{} joins {} devices; it must be a multiple of {}, which what is inside it joins", name, link.devices,
               before);
  }
  faults.add_if(level == 0 && link.is_shared,
                "{} is the innermost, where each device has a port of its own; 'shared' "
                "must be false",
                name);
}

}  // namespace

std::size_t Cluster::level_between(std::int64_t a, std::int64_t b) const {
  check(!links.empty(), "there are links");
  std::size_t level = 0;
  while (level + 1 < links.size() && a / links[level].devices != b / links[level].devices) ++level;
  return level;
}

std::int64_t Cluster::devices_of_port(std::size_t level) const {
  return level > 0 && links[level].is_shared ? links[level - 1].devices : 1;
}

Cluster Cluster::resized(std::int64_t new_devices) const {
  if (new_devices < 1) throw_user_error("a cluster has at least one device, not {}", new_devices);
  if (new_devices > devices && links.size() == 1) {
    throw_user_error(
        "cluster '{}' is one host of {} devices, not of {}; describe hosts and their network in a cluster file", name,
        devices, new_devices);
  }
  Cluster result = *this;
  result.devices = new_devices;
  result.links.clear();
  std::int64_t joined = 1;
  for (const LinkLevel& link : links) {
    if (joined >= new_devices) break;
    result.links.push_back(link);
    if (link.devices >= new_devices) result.links.back().devices = new_devices;
    joined = result.links.back().devices;
  }
  if (joined < new_devices && result.links.empty()) {
    throw_user_error("cluster '{}' is one device without links; {} devices cannot be had of it", name, new_devices);
  }
  if (joined < new_devices) result.links.back().devices = new_devices;
  const std::size_t levels = result.links.size();
  const std::int64_t group = levels > 1 ? result.links[levels - 2].devices : 1;
  if (new_devices % group != 0) {
    throw_user_error("{} devices of cluster '{}' leave a group of {} ('{}') partly empty; take {} or {}", new_devices,
                     name, group, result.links[levels - 2].name, new_devices / group * group,
                     (new_devices / group + 1) * group);
  }
  return result;
}

Faults Cluster::faults() const {
  Faults faults;
  faults.add_if(name.empty(), "the cluster has no name");
  faults.add_if(device.name.empty(), "the device has no name");
  need_positive(faults, "memory of the device", device.memory, kMostBytes);
  need_positive(faults, "peak_16 of the device", device.peak_16);
  need_positive(faults, "peak_32 of the device", device.peak_32);
  need_positive(faults, "memory_bandwidth of the device", device.memory_bandwidth);
  for (const auto& [key, value] : {std::pair{"peak_8", device.peak_8}, {"watts", device.watts}}) {
    if (value != 0) need_positive(faults, fmt::format("{} of the device", key), value);
  }
  const bool is_backend = device.backend.empty() || device.backend == "cpu" || device.backend == "cuda";
  faults.add_if(!is_backend, "backend of the device is '{}'; it must be cpu or cuda, or left out",
                shortened(device.backend));
  for (std::size_t level = 0; level < links.size(); ++level) add_link_faults(faults, *this, level);
  faults.add_if(devices > kMostDevices, "devices is {}; the most is {}", devices, kMostDevices);
  const std::int64_t joined = links.empty() ? 1 : links.back().devices;
  faults.add_if(devices != joined, "devices is {}, but the links join {}; the last link joins all devices", devices,
                joined);
  std::set<std::string> names;
  for (const Constant& constant : constants) {
    faults.add_if(!names.insert(constant.name).second, "constant '{}' is there twice", shortened(constant.name));
    faults.add_if(!std::isfinite(constant.value), "constant '{}' is {}; it must be a number", shortened(constant.name),
                  constant.value);
  }
  return faults;
}

}  // namespace teratron
