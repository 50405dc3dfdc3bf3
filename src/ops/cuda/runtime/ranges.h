// Named ranges of the host's time that NVIDIA's profilers show above what the device did (NVTX). Without a profiler
// they cost a few nanoseconds.
#pragma once

#include <string_view>

namespace teratron::cuda {

void begin_range(std::string_view name);  // they nest, thread by thread
void end_range();

}  // namespace teratron::cuda
