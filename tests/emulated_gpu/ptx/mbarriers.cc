// mbarrier, bar.sync and bar.arrive of some warps, fence.proxy.async, setmaxnreg.
#include "emulated_gpu/ptx/mbarriers.h"

#include <fmt/format.h>

#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/opcodes.h"

namespace teratron::emulated::ptx {

std::string Mbarrier::text() const {
  return fmt::format("it awaits {} arrivals of {} and {} bytes in phase {}", pending, expected, bytes, phase);
}

Mbarrier* Mbarriers::make(std::uint64_t address, std::uint32_t expected) {
  if (all_.size() == kMostMbarriers && !all_.contains(address)) return nullptr;
  const auto number = static_cast<unsigned>(all_.size());
  const auto [entry, is_new] = all_.try_emplace(address);
  Mbarrier& made = entry->second;
  made.number = is_new ? number : made.number;
  made.expected = made.pending = expected;
  made.bytes = 0;
  made.phase = 0;
  return &made;
}

Mbarrier* Mbarriers::find(std::uint64_t address) {
  const auto found = all_.find(address);
  return found == all_.end() ? nullptr : &found->second;
}

std::string NamedBarrier::arrive(std::uint32_t count, std::uint32_t lanes, const Clock& clock) {
  if (count == 0 || count % kLanes != 0) return "a barrier of a number of threads that is no multiple of 32";
  if (arrived == 0) threads = count;
  if (threads != count) return fmt::format("a barrier of {} threads, at which others are {}", count, threads);
  arrived += lanes;
  arrivals.merge(clock);
  if (arrived < threads) return {};
  arrived = 0;
  ++generation;
  ended = arrivals;
  return {};
}

namespace {

constexpr std::size_t kMbarrierBytes = 8;
constexpr std::uint32_t kMostArrivals = (1U << 20) - 1;  // PTX ISA, mbarrier

void make_mbarrier(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto at = addresses(warp, instruction.rows[0], instruction.wide_address, instruction.offset);
  const auto expected = read<std::uint32_t>(warp, instruction.rows[1]);
  for_each_lane(mask, [&](unsigned lane) {
    block.access(Space::kShared, SharedMemory::Access::kWrite, at[lane], kMbarrierBytes, warp, lane, instruction);
    if (expected[lane] == 0 || expected[lane] > kMostArrivals) {
      block.fault(fmt::format("an mbarrier that awaits {} arrivals", expected[lane]), warp, lane, instruction);
    }
    if (block.mbarriers().make(at[lane], expected[lane]) == nullptr) {
      block.fault("more mbarriers than the interpreter has room for", warp, lane, instruction);
    }
  });
}

// Rows: the state that is made (may be absent), address and, with kExpects, bytes.
template <bool kExpects>
void arrive(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto at = addresses(warp, instruction.rows[1], instruction.wide_address, instruction.offset);
  const auto bytes = kExpects ? read<std::uint32_t>(warp, instruction.rows[2]) : Lanes<std::uint32_t>{};
  Clock clock = block.released_clock(warp, mask);
  for_each_lane(mask, [&](unsigned lane) {
    Mbarrier& mbarrier = block.mbarrier_at(at[lane], warp, lane, instruction);
    if (mbarrier.pending == 0) {
      block.fault(fmt::format("arrives at an mbarrier once too often: {}", mbarrier.text()), warp, lane, instruction);
    }
    mbarrier.bytes += bytes[lane];
    mbarrier.arrivals.merge(clock);
    --mbarrier.pending;
    mbarrier.end_phase_if_complete();
  });
}

// Rows: whether the phase has ended, address, parity. The real one may give up; this one waits.
void wait_for_mbarrier(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto at = addresses(warp, instruction.rows[1], instruction.wide_address, instruction.offset);
  const auto parity = read<std::uint32_t>(warp, instruction.rows[2]);
  Clock clock = warp.clock;
  for_each_lane(mask, [&](unsigned lane) {
    const Mbarrier& mbarrier = block.mbarrier_at(at[lane], warp, lane, instruction);
    if (!mbarrier.has_ended(parity[lane])) {
      warp.stalls_for = fmt::format("a phase of an mbarrier that never ends: {}", mbarrier.text());
    }
    clock.merge(mbarrier.ended);
  });
  if (!warp.stalls_for.empty()) return;
  warp.clock = clock;
  Lanes<std::uint32_t> ended;
  ended.fill(1);
  write(warp, instruction.rows[0], mask, ended);
}

void fence_proxy(Block& block, Warp& warp, const Instruction&, LaneMask mask) {
  for_each_lane(mask, [&](unsigned lane) { block.shared().fence(warp.thread(lane)); });
}

// Rows: the barrier's number and its count of threads.
NamedBarrier& come_to_barrier(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
  const auto number = read<std::uint32_t>(warp, instruction.rows[0])[lane];
  if (number >= Block::kNamedBarriers) block.fault("there are 16 barriers", warp, lane, instruction);
  return block.named_barrier(number);
}

void arrive_at_barrier(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  NamedBarrier& barrier = come_to_barrier(block, warp, instruction, mask);
  const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
  const auto count = read<std::uint32_t>(warp, instruction.rows[1])[lane];
  const std::string wrong = barrier.arrive(count, kLanes, block.released_clock(warp, mask));
  if (!wrong.empty()) block.fault(wrong, warp, lane, instruction);
}

void wait_at_barrier(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  NamedBarrier& barrier = come_to_barrier(block, warp, instruction, mask);
  if (!warp.is_at_named_barrier) {
    warp.named_generation = barrier.generation;
    arrive_at_barrier(block, warp, instruction, mask);
  }
  warp.is_at_named_barrier = barrier.generation == warp.named_generation;
  if (warp.is_at_named_barrier) {
    warp.stalls_for = fmt::format("a barrier of {} threads, to which {} come", barrier.threads, barrier.arrived);
    return;
  }
  warp.clock.merge(barrier.ended);
  warp.barrier_stamp = block.shared().pass_warp_barrier();
}

// Registers of a lane that the warp has from now on.
template <bool kMore>
void set_registers(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto lane = static_cast<unsigned>(__builtin_ctz(mask));
  const auto count = read<std::uint32_t>(warp, instruction.rows[0])[lane];
  if (count < 24 || count > 256 || count % 8 != 0) block.fault("a number of registers", warp, lane, instruction);
  if (kMore ? count < warp.register_count : count > warp.register_count) {
    block.fault(fmt::format("setmaxnreg from {} to {} registers", warp.register_count, count), warp, lane, instruction);
  }
  if (!block.give_registers(warp, count)) {
    warp.stalls_for = fmt::format("{} registers a lane, which no other warp gives back", count);
    return;
  }
  block.come_together(warp, count, instruction);
}

}  // namespace

void add_mbarriers(Opcodes& opcodes) {
  opcodes["mbarrier.init.shared::cta.b64"] = {
      .run = make_mbarrier, .outputs = 0, .widths = {kAnyWidth, 4}, .operands = 2};
  opcodes["mbarrier.arrive.shared::cta.b64"] = {.run = arrive<false>, .widths = {8, kAnyWidth}, .operands = 2};
  opcodes["mbarrier.arrive.expect_tx.shared::cta.b64"] = {
      .run = arrive<true>, .widths = {8, kAnyWidth, 4}, .operands = 3};
  opcodes["mbarrier.try_wait.parity.shared::cta.b64"] = {
      .run = wait_for_mbarrier, .kind = Kind::kWait, .widths = {4, kAnyWidth, 4}, .operands = 3};
  opcodes["fence.proxy.async.shared::cta"] = {.run = fence_proxy, .outputs = 0};
  opcodes["bar.sync.counted"] = {.run = wait_at_barrier, .kind = Kind::kWholeWarp, .outputs = 0, .operands = 2};
  opcodes["bar.arrive"] = {.run = arrive_at_barrier, .kind = Kind::kWholeWarp, .outputs = 0, .operands = 2};
  opcodes["setmaxnreg.inc.sync.aligned.u32"] = {
      .run = set_registers<true>, .kind = Kind::kWholeWarp, .outputs = 0, .operands = 1};
  opcodes["setmaxnreg.dec.sync.aligned.u32"] = {
      .run = set_registers<false>, .kind = Kind::kWholeWarp, .outputs = 0, .operands = 1};
}

}  // namespace teratron::emulated::ptx
