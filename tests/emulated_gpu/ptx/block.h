// One block of a launch: its warps, its shared memory, and what may be wrong with what they do. Lanes of a warp that
// are at different instructions take turns: those that are furthest behind run until they meet the next ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulated_gpu/emulator.h"
#include "emulated_gpu/ptx/bulk_copies.h"
#include "emulated_gpu/ptx/global_memory.h"
#include "emulated_gpu/ptx/mbarriers.h"
#include "emulated_gpu/ptx/program.h"
#include "emulated_gpu/ptx/shared_memory.h"
#include "emulated_gpu/ptx/warp.h"
#include "emulated_gpu/ptx/warpgroup_products.h"

namespace teratron::emulated::ptx {

// Generic addresses of shared memory begin here, where no allocation can be.
constexpr std::uint64_t kSharedWindow = 0x5a00000000000000U;
// Those of parameters, which only tensor maps are read by.
constexpr std::uint64_t kParameterWindow = 0x5b00000000000000U;

constexpr std::size_t kWarpsOfGroup = 4;
constexpr std::uint32_t kRegisters = 65536;  // of a block

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kParameter };

class Block {
 public:
  Block(const Program& program, const Dim3& grid, const Dim3& block, std::size_t dynamic_shared,
        std::span<const std::byte> parameters, GlobalMemory& global);

  // InternalError that names the kernel, the line of PTX and the thread: for an access to what is not there or not
  // aligned, a race, a value that is read before it was copied, lanes that are missing, a barrier that others never
  // come to, a division by zero, and a block without end.
  void run(const Dim3& index);

  // The bytes of an access of one lane, after all checks.
  std::byte* access(Space space, SharedMemory::Access access, std::uint64_t address, std::size_t bytes,
                    const Warp& warp, unsigned lane, const Instruction& instruction);
  std::uint32_t special_register(std::int64_t number, const Warp& warp, unsigned lane) const;
  [[noreturn]] void fault(const std::string& what, const Warp& warp, unsigned lane,
                          const Instruction& instruction) const;

  // cp.async. The copy is done when its group is waited for.
  void start_copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, std::size_t given, const Warp& warp,
                  unsigned lane, const Instruction& instruction);
  void commit_copies(unsigned thread) { copies_[thread].emplace_back(); }
  void wait_for_copies(std::size_t groups_left, const Warp& warp, unsigned lane);

  // Barriers that warps wait for by themselves (mbarriers.h), and work that they start and do not wait for.
  static constexpr std::size_t kNamedBarriers = 16;
  Mbarriers& mbarriers() { return mbarriers_; }
  Mbarrier& mbarrier_at(std::uint64_t address, const Warp& warp, unsigned lane, const Instruction& instruction);
  NamedBarrier& named_barrier(std::size_t number) { return named_barriers_.at(number); }
  // Clock that others are ordered after, once they see that these lanes have come.
  Clock released_clock(const Warp& warp, LaneMask mask);
  void start_bulk_copy(BulkCopy copy);
  const std::byte* parameter(std::uint64_t generic_address, std::size_t bytes, const Warp& warp, unsigned lane,
                             const Instruction& instruction);
  // False: other warps have them.
  bool give_registers(Warp& warp, std::uint32_t count);
  // The four warps of a warpgroup do the same instructions with the same `value`, in one order.
  void come_together(Warp& warp, std::uint64_t value, const Instruction& instruction);
  SharedMemory& shared() { return shared_; }
  SharedMemory::Actor actor(const Warp& warp, unsigned lane) const {
    return {warp.thread(lane), warp.barrier_stamp, &warp.clock};
  }

 private:
  struct Copy {
    std::uint64_t to, from;
    std::size_t bytes, given;
  };
  using CopyGroups = std::vector<std::vector<Copy>>;  // of a thread; the last one is not committed

  void prepare();
  void run_warp(Warp& warp);
  void run_lanes(Warp& warp, std::uint32_t next, LaneMask mask, std::uint32_t others);
  bool branch(Warp& warp, std::uint32_t& next, LaneMask mask, LaneMask taken) const;
  void leave(Warp& warp, std::uint32_t next, LaneMask mask, LaneMask gone) const;
  void meet(Warp& warp, std::uint32_t next, LaneMask mask);
  void do_together(Warp& warp, const Instruction& instruction, LaneMask mask);
  LaneMask needed(const Warp& warp, const Instruction& instruction, LaneMask mask) const;
  LaneMask taken(const Warp& warp, const Instruction& instruction, LaneMask mask) const;
  bool all_wait_for_block() const;
  bool release_block();
  void stall(Warp& warp, std::uint32_t next, LaneMask mask);
  void finish_bulk_copy();
  [[noreturn]] void fail_stuck() const;
  void check_end() const;
  void watch_products(Warp& warp, const Instruction& instruction, LaneMask mask) const;

  const Program& program_;
  const Dim3 grid_, shape_;
  Dim3 index_;
  const unsigned threads_;
  const std::size_t shared_bytes_;
  std::span<const std::byte> parameters_;
  GlobalMemory& global_;
  SharedMemory shared_;
  std::vector<std::uint32_t> registers_;
  std::vector<Warp> warps_;
  std::vector<CopyGroups> copies_;
  Mbarriers mbarriers_;
  std::array<NamedBarrier, kNamedBarriers> named_barriers_;
  BulkCopies copies_in_bulk_;
  std::vector<WarpProducts> products_;  // by warp
  struct Together {
    const Instruction* instruction;
    std::uint64_t value;
  };
  std::vector<std::vector<Together>> together_;  // by warpgroup
  std::int64_t steps_left_ = 0;
};

}  // namespace teratron::emulated::ptx
