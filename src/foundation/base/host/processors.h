// How many processors this process may use, by what the system says.
#pragma once

#include <filesystem>

namespace teratron {

// The processors that the calling thread is bound to; 1 where the system does not say.
int bound_processors();

// The quota of CPU time of the control group that the process is in, and of those around it: the smallest, in
// processors, rounded up; 0 where there is none. `root`: of the file system, for tests.
int processor_quota(const std::filesystem::path& root = "/");

// Those that this process is bound to, but no more than its quota. At least 1.
int usable_processors();

// What the environment variable OMP_NUM_THREADS says where it is a number, else usable_processors().
int usual_threads();

}  // namespace teratron
