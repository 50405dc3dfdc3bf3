// When a stream comes to where it was marked, by the host's clock.
#pragma once

#include <memory>

#include "ops/backend.h"
#include "ops/cuda/runtime/device.h"

namespace teratron::cuda {

class Moments {
 public:
  explicit Moments(cudaStream_t stream) : stream_(stream) {}

  std::shared_ptr<const Backend::Moment> mark();
  // The stream has done all it was given: what was marked so far can be told from now on. Events are compared with one
  // of this moment rather than with a first one, since the time between two is a float.
  void anchor();

 private:
  class StreamMoment;
  struct Anchor {
    TimedEvent event;
    double seconds = -1;
  };
  const cudaStream_t stream_;
  std::shared_ptr<Anchor> next_;  // of what was marked since the last one
};

}  // namespace teratron::cuda
