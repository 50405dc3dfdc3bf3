// One block of a launch: its warps, its shared memory, and what may be wrong with what they do. Lanes of a warp that
// are at different instructions take turns: those that are furthest behind run until they meet the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulated_gpu/emulator.h"
#include "emulated_gpu/ptx/global_memory.h"
#include "emulated_gpu/ptx/program.h"
#include "emulated_gpu/ptx/shared_memory.h"
#include "emulated_gpu/ptx/warp.h"

namespace teratron::emulated::ptx {

// Generic addresses of shared memory begin here, where no allocation can be.
constexpr std::uint64_t kSharedWindow = 0x5a00000000000000U;

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
  bool release_block();
  SharedMemory::Actor actor(const Warp& warp, unsigned lane) const { return {warp.thread(lane), warp.barrier_stamp}; }

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
  std::int64_t steps_left_ = 0;
};

}  // namespace teratron::emulated::ptx
