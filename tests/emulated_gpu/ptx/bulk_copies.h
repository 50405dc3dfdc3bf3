// Bulk copies of tensors (cp.async.bulk.tensor), which arrive as late as they can, in an order that changes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulated_gpu/ptx/program.h"
#include "emulated_gpu/ptx/shared_memory.h"
#include "emulated_gpu/tensor_map.h"

namespace teratron::emulated::ptx {

struct Warp;

struct BulkCopy {
  std::uint64_t to = 0, mbarrier = 0;
  TensorMap map;
  std::array<std::int32_t, kMostTensorAxes> first{};  // element of each axis; those outside the tensor are zeros
  Clock clock;                                        // of who started it
  const Warp* warp = nullptr;                         // who did
  unsigned lane = 0;
  const Instruction* instruction = nullptr;
};

class BulkCopies {
 public:
  void reset() { under_way_.clear(); }
  bool empty() const { return under_way_.empty(); }
  const BulkCopy& any() const { return under_way_.front(); }
  void start(const BulkCopy& copy) { under_way_.push_back(copy); }
  BulkCopy take();  // the one that arrives next; there is one

 private:
  std::vector<BulkCopy> under_way_;
  std::uint32_t order_ = 1;
};

}  // namespace teratron::emulated::ptx
