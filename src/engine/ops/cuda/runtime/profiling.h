// Timestamps of a stream in seconds of the host's clock, and named ranges of host time for NVIDIA's profilers.
#pragma once

#include <memory>
#include <string_view>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class Timestamps {
 public:
  explicit Timestamps(cudaStream_t stream) : stream_(stream) {}

  std::shared_ptr<const Backend::Timestamp> record();
  // Called when the stream is idle: makes the timestamps recorded so far valid. An event of now is the reference to
  // which they are measured: CUDA gives the time between two events as a float, so the reference must be recent.
  void anchor();

 private:
  class StreamTimestamp;
  struct Anchor {
    TimedEvent event;
    double seconds = -1;
  };
  const cudaStream_t stream_;
  std::shared_ptr<Anchor> next_;  // of the timestamps recorded since the last anchor()
};

// NVTX ranges. Without a profiler one costs a few nanoseconds.
void begin_range(std::string_view name);  // they nest, thread by thread
void end_range();

}  // namespace teratron::cuda
