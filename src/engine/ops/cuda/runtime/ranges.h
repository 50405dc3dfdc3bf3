// Named ranges of host time (NVTX), which NVIDIA's profilers show above the device's work. Without a profiler a range
// costs a few nanoseconds.
#pragma once

#include <string_view>

namespace teratron::cuda {

void begin_range(std::string_view name);  // they nest, thread by thread
void end_range();

}  // namespace teratron::cuda
