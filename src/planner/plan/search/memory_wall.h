// Memory wall: the state that a model keeps for training against the memory of a device (Megatron-LM, section 1), and
// the changes that make a model fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
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
  std::int64_t least_devices = 0;  // that hold the state and nothing else
  // Parameters whose state the devices hold, with nothing else.
  double room_of(std::int64_t devices) const {
    return static_cast<double>(devices) * static_cast<double>(room) / bytes.all();
  }
  // One copy of the model with every saving: sequences one by one, full recompute, sequence parallelism.
  std::optional<WallLayout> tensor_alone;  // the smallest tensor parallelism that fits, without a pipeline
  std::optional<WallLayout> fewest;        // the fewest devices, by tensors and by layers
};

// Ignores the flags of the layout that the user has fixed.
MemoryWall memory_wall(const PlanRequest& request);

struct Change {
  std::string text;        // "take 16 devices", ..
  Layout layout;           // that fits then
  std::int64_t bytes = 0;  // of its fullest rank, planned
};

// Changes for a request that fits nowhere: no flags of the layout, more devices; if neither helps, shorter sequences.
// Each fits by itself.
std::vector<Change> fitting_changes(const PlanRequest& request);

// Error of a model that is larger than the memory of the devices that a plan is for. Where these are the machine at
// hand, that is an EnvironmentError (program/run).
class TooLargeError : public UserError {
 public:
  using UserError::UserError;
};

// TooLargeError: by how much the model is too large, and these changes.
[[noreturn]] void throw_too_large(const PlanRequest& request, const SearchResult& result);

}  // namespace teratron::plan
