// Timing of work on the device.
#pragma once

#include <optional>

#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

// Microseconds that run() takes, which queues work on the stream; nothing where it returns false, as it may at any
// time.
template <class Run>
std::optional<double> microseconds_of(cudaStream_t stream, const Run& run) {
  constexpr int kRuns = 4;
  const TimedEvent start, end;
  bool runs = run();  // keeps the device busy until all that is timed is queued
  start.record(stream);
  for (int i = 0; runs && i < kRuns; ++i) runs = run();
  end.record(stream);
  end.wait();
  if (runs) return end.microseconds_since(start) / kRuns;
  cudaGetLastError();  // and forget it
  return std::nullopt;
}

}  // namespace teratron::cuda
