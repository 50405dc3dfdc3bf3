// Why one device is not enough: what a model keeps for training, beside what a device has (Megatron-LM, section 1).
#pragma once

#include <cstdint>
#include <optional>

#include "plan/search/layout_memory.h"
#include "plan/search/layout_search.h"

namespace teratron::plan {

struct WallLayout {
  Layout layout;
  std::int64_t bytes = 0;  // of the rank that takes most, planned
};

struct MemoryWall {
  // Bytes that training keeps of a parameter: the mean, since an optimizer may keep more of some than of others.
  struct Bytes {
    double weight = 0, gradient = 0, optimizer = 0;
    double all() const { return weight + gradient + optimizer; }
  };
  double parameters = 0;
  Bytes bytes;
  std::int64_t room = 0;           // of a device
  std::int64_t least_devices = 0;  // whose memory the state alone would fill
  // Parameters whose state so many devices hold, with nothing else.
  double room_of(std::int64_t devices) const {
    return static_cast<double>(devices) * static_cast<double>(room) / bytes.all();
  }
  // With all that saves memory: sequences one by one, full recompute, sequence parallelism. One copy of the model.
  std::optional<WallLayout> tensor_alone;  // the smallest tensor parallelism that fits, without a pipeline
  std::optional<WallLayout> fewest;        // the fewest devices, by tensors and by layers
};

// What the user has fixed of the layout does not matter.
MemoryWall memory_wall(const PlanRequest& request);

}  // namespace teratron::plan
