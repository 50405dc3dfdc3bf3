// Helpers of tests whose ranks are threads.
#pragma once

#include <functional>
#include <vector>

#include "comm/launch.h"

namespace teratron::testing {

using Body = std::function<void(Communicator& world)>;

inline const std::vector<DType> kAllDTypes = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                                              DType::kI64, DType::kI32, DType::kU16,  DType::kU8};

inline void run_threads(int ranks, const Body& body) { run_ranks({.host = "here"}, ranks, body); }

inline std::vector<int> everyone(int size) {
  std::vector<int> members(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) members[static_cast<std::size_t>(rank)] = rank;
  return members;
}

}  // namespace teratron::testing
