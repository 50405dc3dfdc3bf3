// The control groups (cgroups, versions 1 and 2) that hold this process: where containers, Slurm and systemd set
// limits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace teratron {

// The folders of the groups that this process is in and of those around them, as far as they are seen, for a controller
// of version 1 ("cpu", "memory") and for version 2. `root`: of the file system, for tests.
std::vector<std::filesystem::path> control_groups(std::string_view controller, const std::filesystem::path& root = "/");

// The number that a group's file begins with; nothing where there is no such file, or it says "max".
std::optional<std::int64_t> control_value(const std::filesystem::path& file);

}  // namespace teratron
