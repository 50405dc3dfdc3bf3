// Memory accesses of a block's lanes, and the faults that they may have.
#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "emulated_gpu/ptx/block.h"

namespace teratron::emulated::ptx {
namespace {

std::string name_of(Space space) {
  switch (space) {
    case Space::kGlobal: return "global memory";
    case Space::kShared: return "shared memory";
    case Space::kParameter: return "the parameters";
    case Space::kGeneric: break;
  }
  return "memory";
}

}  // namespace

void Block::fault(const std::string& what, const Warp& warp, unsigned lane, const Instruction& instruction) const {
  const unsigned thread = warp.thread(lane);
  throw InternalError(fmt::format("{}:{}: in kernel {}, thread {} ({}, {}, {}) of block ({}, {}, {}): {}",
                                  program_.file, instruction.line, program_.kernel, thread, thread % shape_.x,
                                  thread / shape_.x % shape_.y, thread / (shape_.x * shape_.y), index_.x, index_.y,
                                  index_.z, what));
}

std::byte* Block::access(Space space, SharedMemory::Access access, std::uint64_t address, std::size_t bytes,
                         const Warp& warp, unsigned lane, const Instruction& instruction) {
  const auto fail = [&](const char* how) {
    fault(fmt::format("{} {} bytes of {} at {:#x}, {}", access == SharedMemory::Access::kRead ? "reads" : "writes",
                      bytes, name_of(space), address, how),
          warp, lane, instruction);
  };
  if (space == Space::kGeneric) {
    const bool is_shared = address >= kSharedWindow && address - kSharedWindow < (1U << 24);
    space = is_shared ? Space::kShared : Space::kGlobal;
    address -= is_shared ? kSharedWindow : 0;
  }
  if (address % bytes != 0) fail("which is a misaligned address");
  if (space == Space::kGlobal) {
    if (!global_.holds(address, bytes)) fail("which is outside every allocation");
    return reinterpret_cast<std::byte*>(address);
  }
  if (space == Space::kParameter) {
    if (address + bytes > parameters_.size() || address + bytes < address) fail("which is beyond their end");
    return const_cast<std::byte*>(parameters_.data() + address);  // NOLINT: no instruction writes there
  }
  if (address + bytes > shared_.bytes() || address + bytes < address) {
    fail(fmt::format("of which the block has {}", shared_.bytes()).c_str());
  }
  if (const auto conflict = shared_.note(access, address, bytes, actor(warp, lane))) {
    fault(conflict.text(access), warp, lane, instruction);
  }
  return shared_.at(address);
}

void Block::start_copy(std::uint64_t to, std::uint64_t from, std::size_t bytes, std::size_t given, const Warp& warp,
                       unsigned lane, const Instruction& instruction) {
  access(Space::kShared, SharedMemory::Access::kWrite, to, bytes, warp, lane, instruction);
  if (from % bytes != 0) fault("copies (cp.async) from a misaligned address", warp, lane, instruction);
  if (given > bytes) fault("copies (cp.async) more than it has room for", warp, lane, instruction);
  if (given > 0 && !global_.holds(from, given)) {
    fault("copies (cp.async) from outside every allocation", warp, lane, instruction);
  }
  shared_.start_copy(to, bytes, actor(warp, lane));
  copies_[warp.thread(lane)].back().push_back({to, from, bytes, given});
}

void Block::wait_for_copies(std::size_t groups_left, const Warp& warp, unsigned lane) {
  CopyGroups& groups = copies_[warp.thread(lane)];
  while (groups.size() > groups_left + 1) {
    for (const Copy& copy : groups.front()) {
      shared_.finish_copy(copy.to, reinterpret_cast<const void*>(copy.from), copy.bytes, copy.given, actor(warp, lane));
    }
    groups.erase(groups.begin());
  }
}

std::uint32_t Block::special_register(std::int64_t number, const Warp& warp, unsigned lane) const {
  const unsigned thread = warp.thread(lane);
  const std::array<std::uint32_t, 13> values = {thread % shape_.x,
                                                thread / shape_.x % shape_.y,
                                                thread / (shape_.x * shape_.y),
                                                shape_.x,
                                                shape_.y,
                                                shape_.z,
                                                index_.x,
                                                index_.y,
                                                index_.z,
                                                grid_.x,
                                                grid_.y,
                                                grid_.z,
                                                lane};
  return values.at(static_cast<std::size_t>(number));
}

}  // namespace teratron::emulated::ptx
