// Processors and memory that this process uses and may use, with the limits of the control groups (cgroups, versions 1
// and 2) around it, which containers, Slurm and systemd set. `root`: root of the file system, for tests.
#pragma once

#include <sched.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace teratron {

// Numbers of the processors that the calling thread may run on, in order; none where the system does not say.
// `affinity`: reads them, for tests.
std::vector<int> own_processors(int (*affinity)(pid_t, std::size_t, cpu_set_t*) = ::sched_getaffinity);

// Count of own_processors(), at least 1.
int bound_processors();

// Smallest quota of CPU time of the process's control group and those around it, in processors, rounded up. 0: none.
int processor_quota(const std::filesystem::path& root = "/");

// bound_processors(), at most the quota. At least 1.
int usable_processors();

// Threads for a value of OMP_NUM_THREADS (nullptr: not set): its number, at most 4096 as --threads; usable_processors()
// where it is no positive number.
int threads_asked_for(const char* openmp_variable);
// threads_asked_for() of the environment, read at the first call.
int usual_threads();

// Bytes that the machine has available, at most what the control groups leave of their limits. File pages that the
// kernel can drop count as free. nullopt: the system does not say.
std::optional<std::int64_t> available_host_memory(const std::filesystem::path& root = "/");

// Resident bytes now (VmRSS of /proc/self/status); 0: the system does not say.
std::uint64_t resident_memory_bytes();

// Highest resident bytes since the program started (VmHWM of /proc/self/status); 0: the system does not say.
std::uint64_t peak_memory_bytes();

}  // namespace teratron
