// Waits of a block's warps, one by one, and what is asked of them when nobody can go on and when all are done.
#include <fmt/format.h>

#include "base/error.h"
#include "emulated_gpu/ptx/block.h"

namespace teratron::emulated::ptx {

Mbarrier& Block::mbarrier_at(std::uint64_t address, const Warp& warp, unsigned lane, const Instruction& instruction) {
  Mbarrier* const found = mbarriers_.find(address);
  if (found == nullptr) fault(fmt::format("there is no mbarrier at {:#x}", address), warp, lane, instruction);
  if (const auto conflict = shared_.ordered(address, sizeof(std::uint64_t), actor(warp, lane))) {
    fault("uses an mbarrier: " + conflict.text(SharedMemory::Access::kRead), warp, lane, instruction);
  }
  return *found;
}

Clock Block::released_clock(const Warp& warp, LaneMask mask) {
  Clock clock = warp.clock;
  clock.before[warp.number] = mask == warp.live ? shared_.tick() : warp.barrier_stamp;
  return clock;
}

const std::byte* Block::parameter(std::uint64_t generic_address, std::size_t bytes, const Warp& warp, unsigned lane,
                                  const Instruction& instruction) {
  const std::uint64_t at = generic_address - kParameterWindow;
  if (generic_address < kParameterWindow || at > parameters_.size() || at + bytes > parameters_.size()) {
    fault("a tensor map that is no parameter", warp, lane, instruction);
  }
  return parameters_.data() + at;
}

bool Block::give_registers(Warp& warp, std::uint32_t count) {
  std::uint32_t all = count;
  for (const Warp& other : warps_) all += other.number == warp.number ? 0 : other.register_count;
  if (all * kLanes > kRegisters) return false;
  warp.register_count = count;
  return true;
}

void Block::come_together(Warp& warp, std::uint64_t value, const Instruction& instruction) {
  std::vector<Together>& together = together_[warp.number / kWarpsOfGroup];
  if ((warp.number / kWarpsOfGroup + 1) * kWarpsOfGroup > warps_.size()) {
    fault("a warpgroup of less than four warps", warp, 0, instruction);
  }
  if (warp.done_together == together.size()) together.push_back({&instruction, value});
  const Together& first = together[warp.done_together++];
  if (first.instruction != &instruction || first.value != value) {
    fault(fmt::format("a warp of its warpgroup is at line {} with {:#x}, where this one has {:#x}",
                      first.instruction->line, first.value, value),
          warp, 0, instruction);
  }
}

void Block::watch_products(Warp& warp, const Instruction& instruction, LaneMask mask) const {
  if (mask == 0 || instruction.role == Role::kProduct) return;
  if (const char* const found = warp.products->watch(instruction)) {
    fault(std::string(found) + ", and no wgmma.wait_group is between them", warp,
          static_cast<unsigned>(__builtin_ctz(mask)), instruction);
  }
}

void Block::fail_stuck() const {
  for (const Warp& warp : warps_) {
    if (warp.live == 0 || warp.waits_for_block) continue;
    for_each_lane(warp.live, [&](unsigned lane) {
      if (warp.state[lane] != Warp::Lane::kStalled) return;
      fault("waits, as all others do, for " + warp.stalled_for, warp, lane, program_.code[warp.next[lane]]);
    });
  }
  throw InternalError(fmt::format("{}: a block of {} is stuck", program_.file, program_.kernel));
}

void Block::check_end() const {
  if (!copies_in_bulk_.empty()) {
    const BulkCopy& copy = copies_in_bulk_.any();
    fault("starts a bulk copy for which the block does not wait", *copy.warp, copy.lane, *copy.instruction);
  }
  for (const Warp& warp : warps_) {
    if (warp.products != nullptr && warp.products->any_under_way()) {
      fault("ends without waiting for its products (wgmma)", warp, 0, program_.code.back());
    }
    const auto& together = together_[warp.number / kWarpsOfGroup];
    if (warp.done_together != together.size()) {
      fault("its warpgroup does this without it", warp, 0, *together[warp.done_together].instruction);
    }
  }
}

}  // namespace teratron::emulated::ptx
