#include "emulated_gpu/ptx/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace teratron::emulated::ptx {
namespace {

constexpr std::int64_t kMostSteps = 20'000'000;  // instructions of warps; our tests' blocks take less than a tenth
constexpr std::uint32_t kMostRegisters = 248;    // of a lane, when a kernel begins
constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

LaneMask lanes_in(const Warp& warp, Warp::Lane state) {
  LaneMask mask = 0;
  for_each_lane(warp.live, [&](unsigned lane) {
    if (warp.state[lane] == state) mask |= 1U << lane;
  });
  return mask;
}

LaneMask lanes_at(const Warp& warp, LaneMask among, std::uint32_t next) {
  LaneMask mask = 0;
  for_each_lane(among, [&](unsigned lane) {
    if (warp.next[lane] == next) mask |= 1U << lane;
  });
  return mask;
}

void move_to(Warp& warp, LaneMask mask, std::uint32_t next) {
  for_each_lane(mask, [&](unsigned lane) { warp.next[lane] = next; });
}

void set_state(Warp& warp, LaneMask mask, Warp::Lane state) {
  for_each_lane(mask, [&](unsigned lane) { warp.state[lane] = state; });
}

}  // namespace

Block::Block(const Program& program, const Dim3& grid, const Dim3& block, std::size_t dynamic_shared,
             std::span<const std::byte> parameters, GlobalMemory& global)
    : program_(program),
      grid_(grid),
      shape_(block),
      threads_(block.x * block.y * block.z),
      shared_bytes_(dynamic_shared > 0 ? program.dynamic_shared_at + dynamic_shared : program.static_shared),
      parameters_(parameters),
      global_(global),
      registers_((threads_ + kLanes - 1) / kLanes * program.register_units),
      warps_((threads_ + kLanes - 1) / kLanes),
      copies_(threads_),
      products_(program.has_products ? warps_.size() : 0),
      together_((warps_.size() + kWarpsOfGroup - 1) / kWarpsOfGroup) {}

void Block::prepare() {
  shared_.reset(shared_bytes_);
  std::fill(registers_.begin(), registers_.end(), 0xffffffffU);  // NaN
  for (unsigned i = 0; i < warps_.size(); ++i) {
    Warp& warp = warps_[i];
    const unsigned lanes = std::min(threads_ - i * kLanes, kLanes);
    warp = {.number = i,
            .live = lanes == kLanes ? kAllLanes : (1U << lanes) - 1,
            .registers = registers_.data() + i * program_.register_units,
            .constants = program_.constants.data(),
            .register_count = std::min(kMostRegisters, kRegisters / threads_ / 8 * 8)};
    if (program_.has_products) {
      products_[i].reset(program_.register_units);
      warp.products = &products_[i];
    }
  }
  mbarriers_.reset();
  named_barriers_.fill({});
  copies_in_bulk_.reset();
  for (auto& together : together_) together.clear();
  for (CopyGroups& groups : copies_) groups.assign(1, {});
  steps_left_ = kMostSteps;
}

void Block::run(const Dim3& index) {
  index_ = index;
  prepare();
  do {
    while (!all_wait_for_block()) {
      const std::int64_t before = steps_left_;
      for (Warp& warp : warps_) run_warp(warp);
      if (steps_left_ != before) continue;
      if (copies_in_bulk_.empty()) fail_stuck();
      finish_bulk_copy();
    }
  } while (release_block());
  check_end();
}

// Those that are not done.
bool Block::all_wait_for_block() const {
  return std::all_of(warps_.begin(), warps_.end(),
                     [](const Warp& warp) { return warp.live == 0 || warp.waits_for_block; });
}

// True: all threads that are left waited at one barrier, and go on. False: none is left.
bool Block::release_block() {
  const Warp* first = nullptr;
  for (const Warp& warp : warps_) {
    if (warp.live == 0) continue;
    const unsigned lane = static_cast<unsigned>(__builtin_ctz(warp.live));
    if (first == nullptr) first = &warp;
    const auto at = first->next[static_cast<unsigned>(__builtin_ctz(first->live))];
    if (warp.next[lane] != at) {
      fault("the threads of a block wait at different barriers", warp, lane, program_.code[warp.next[lane] - 1]);
    }
  }
  if (first == nullptr) return false;
  shared_.pass_block_barrier();
  for (Warp& warp : warps_) warp.waits_for_block = false;
  return true;
}

// Until its lanes wait for the block or are done.
void Block::run_warp(Warp& warp) {
  set_state(warp, lanes_in(warp, Warp::Lane::kStalled), Warp::Lane::kReady);  // which try again
  while (warp.live != 0 && !warp.waits_for_block) {
    const LaneMask ready = lanes_in(warp, Warp::Lane::kReady);
    if (ready == 0) {
      if (lanes_in(warp, Warp::Lane::kStalled) != 0) return;
      const unsigned lane = static_cast<unsigned>(__builtin_ctz(warp.live));
      fault("waits for lanes of its warp that never come", warp, lane, program_.code[warp.next[lane]]);
    }
    std::uint32_t next = kNobody, others = kNobody;
    for_each_lane(ready, [&](unsigned lane) { next = std::min(next, warp.next[lane]); });
    const LaneMask mask = lanes_at(warp, ready, next);
    for_each_lane(ready & ~mask, [&](unsigned lane) { others = std::min(others, warp.next[lane]); });
    run_lanes(warp, next, mask, others);
  }
}

LaneMask Block::taken(const Warp& warp, const Instruction& instruction, LaneMask mask) const {
  if (instruction.guard == kNoRow) return mask;
  const std::uint32_t* const predicate = warp.row(instruction.guard);
  LaneMask holds = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) holds |= (predicate[lane] & 1U) << lane;
  return mask & (instruction.guard_negated ? ~holds : holds);
}

// Lanes that are at one instruction, until they part, wait, end, or come to where `others` are.
void Block::run_lanes(Warp& warp, std::uint32_t next, LaneMask mask, std::uint32_t others) {
  while (next < others) {
    const Instruction& instruction = program_.code[next];
    if (--steps_left_ < 0) {
      fault("the block does not end", warp, static_cast<unsigned>(__builtin_ctz(mask)), instruction);
    }
    const LaneMask active = taken(warp, instruction, mask);
    if (program_.has_products) watch_products(warp, instruction, active);
    switch (instruction.kind) {
      case Kind::kPlain:
        if (active != 0) instruction.run(*this, warp, instruction, active);
        ++next;
        break;
      case Kind::kWait:
        if (active != 0) instruction.run(*this, warp, instruction, active);
        if (!warp.stalls_for.empty()) return stall(warp, next, mask);
        ++next;
        break;
      case Kind::kBranch:
        if (!branch(warp, next, mask, active)) return;
        break;
      case Kind::kReturn: leave(warp, next, mask, active); return;
      default:
        if (active == 0) {
          ++next;
          break;
        }
        if (active != warp.live) {
          move_to(warp, mask & ~active, next + 1);
          meet(warp, next, active);
          return;
        }
        do_together(warp, instruction, active);
        if (!warp.stalls_for.empty()) return stall(warp, next, mask);
        ++next;
        if (!warp.waits_for_block) break;
        move_to(warp, mask, next);
        return;
    }
  }
  move_to(warp, mask, next);
}

// Lanes that wait for other warps or for copies try again when those have had their turn.
void Block::stall(Warp& warp, std::uint32_t next, LaneMask mask) {
  move_to(warp, mask, next);
  set_state(warp, mask, Warp::Lane::kStalled);
  warp.stalled_for = std::exchange(warp.stalls_for, {});
  ++steps_left_;
}

// False: the lanes part.
bool Block::branch(Warp& warp, std::uint32_t& next, LaneMask mask, LaneMask taken) const {
  const std::uint32_t target = program_.code[next].target;
  if (taken == mask || taken == 0) {
    next = taken == mask ? target : next + 1;
    return true;
  }
  move_to(warp, taken, target);
  move_to(warp, mask & ~taken, next + 1);
  return false;
}

void Block::leave(Warp& warp, std::uint32_t next, LaneMask mask, LaneMask gone) const {
  warp.live &= ~gone;
  set_state(warp, gone, Warp::Lane::kDone);
  move_to(warp, mask & ~gone, next + 1);
  set_state(warp, lanes_in(warp, Warp::Lane::kParked), Warp::Lane::kReady);  // fewer lanes are needed now
}

LaneMask Block::needed(const Warp& warp, const Instruction& instruction, LaneMask mask) const {
  const unsigned first = static_cast<unsigned>(__builtin_ctz(mask));
  if (instruction.kind == Kind::kBlockBarrier) return warp.live;
  if (instruction.kind == Kind::kWholeWarp) {
    if (warp.live != kAllLanes) fault("lanes of the warp are missing", warp, first, instruction);
    return kAllLanes;
  }
  const std::size_t operand = instruction.kind == Kind::kWarpBarrier ? 0 : 5;
  const std::uint32_t* const named = warp.row(instruction.rows[operand]);
  for_each_lane(mask, [&](unsigned lane) {
    if (named[lane] != named[first] || (named[lane] >> lane & 1) == 0) {
      fault("its mask of lanes is not that of the others, or is without it", warp, lane, instruction);
    }
  });
  return named[first] & warp.live;
}

// Lanes at an instruction that needs others wait for them, or do it with those that waited.
void Block::meet(Warp& warp, std::uint32_t next, LaneMask mask) {
  const Instruction& instruction = program_.code[next];
  const LaneMask here = mask | lanes_at(warp, lanes_in(warp, Warp::Lane::kParked), next);
  move_to(warp, mask, next);
  if ((needed(warp, instruction, here) & ~here) != 0) {
    set_state(warp, mask, Warp::Lane::kParked);
    return;
  }
  set_state(warp, here, Warp::Lane::kReady);
  move_to(warp, here, next + 1);
  do_together(warp, instruction, here);
  if (!warp.stalls_for.empty()) stall(warp, next, here);
}

void Block::do_together(Warp& warp, const Instruction& instruction, LaneMask mask) {
  needed(warp, instruction, mask);  // which looks at the masks
  switch (instruction.kind) {
    case Kind::kBlockBarrier: warp.waits_for_block = true; break;
    case Kind::kWarpBarrier: warp.barrier_stamp = shared_.pass_warp_barrier(); break;
    default: instruction.run(*this, warp, instruction, mask);
  }
}

}  // namespace teratron::emulated::ptx
