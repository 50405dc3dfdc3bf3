// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace teratron {

// Bytes that the machine has available, and no more than what the control groups around this process (a container's, a
// Slurm job's) leave of their limits; file pages that the kernel can drop count as free. Nothing where the system does
// not tell. `root`: of the file system, for tests.
std::optional<std::int64_t> available_host_memory(const std::filesystem::path& root = "/");

}  // namespace teratron
