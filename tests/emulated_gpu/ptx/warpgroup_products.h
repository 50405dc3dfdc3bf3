// Products of warpgroups (wgmma) that a warp has started: what they read and write until it has waited for them.
#pragma once

#include <cstdint>
#include <vector>

#include "emulated_gpu/ptx/program.h"

namespace teratron::emulated::ptx {

class WarpProducts {
 public:
  struct Group {
    std::vector<Row> sums, operands;
    std::vector<std::uint64_t> chunks;  // of shared memory
  };

  void reset(std::size_t register_units);
  // Counts what an instruction uses. The name of what it must not do to a product under way; null: it does none.
  const char* watch(const Instruction& instruction);
  void fence() { fence_ = executed_; }
  // Whether wgmma.fence came after what was done to the register; before the first product there is one in any case.
  bool is_fenced(Row row) const { return fence_ > 0 && accessed_[row / kLanes] <= fence_; }
  void add(const Group& product);
  void commit() { groups_.emplace_back(); }
  bool has_more_than(std::size_t groups) const { return groups_.size() > groups + 1; }
  Group take_oldest();
  bool any_under_way() const { return groups_.size() > 1 || !groups_.front().sums.empty(); }

 private:
  std::vector<Group> groups_;  // the last one is not committed
  // By units of registers: the number of the instruction that used them last, how many products under way write and
  // read them.
  std::vector<std::uint64_t> accessed_;
  std::vector<std::uint16_t> sums_, operands_;
  std::uint64_t executed_ = 0, fence_ = 0;
};

}  // namespace teratron::emulated::ptx
