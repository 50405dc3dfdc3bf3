#include "emulated_gpu/ptx/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulated_gpu/ptx/program.h"

namespace teratron::emulated::ptx {
namespace {

// Readers of one byte that are several: lanes of one warp, or of more.
constexpr std::uint16_t kLanesOfWarp = 0x8000, kManyWarps = 0xffff;

std::uint16_t counted(unsigned thread) { return static_cast<std::uint16_t>(thread + 1); }

}  // namespace

std::string SharedMemory::Conflict::text(Access access) const {
  const std::string who = other >= 0 ? fmt::format("thread {}", other) : "several threads";
  const char* const what = access == Access::kRead ? "reads" : "writes";
  if (kind == Kind::kCopied) {
    return fmt::format("{} shared memory to which {} copies (cp.async) before the copy was waited for", what, who);
  }
  return fmt::format("{} shared memory that {} {} with no barrier between them (a race)", what, who,
                     kind == Kind::kWritten ? "wrote" : "read");
}

void SharedMemory::reset(std::size_t bytes) {
  memory_.assign(bytes, std::byte{0xff});
  if (cells_.size() < bytes || now_ > 0xf0000000U) {
    cells_.assign(bytes, Cell{});
    now_ = 1;
  }
  std::for_each(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(bytes),
                [](Cell& cell) { cell.copier = 0; });
  pass_block_barrier();
}

bool SharedMemory::precedes(std::uint32_t stamp, unsigned earlier_warp, const Actor& actor) const {
  return stamp < block_barrier_ || (earlier_warp == actor.thread / kLanes && stamp < actor.warp_barrier);
}

SharedMemory::Conflict SharedMemory::conflict(const Cell& cell, Access access, const Actor& actor) const {
  const std::uint16_t self = counted(actor.thread);
  if (cell.copier != 0) return {Conflict::Kind::kCopied, cell.copier - 1};
  if (cell.writer != 0 && cell.writer != self && !precedes(cell.written, (cell.writer - 1U) / kLanes, actor)) {
    return {Conflict::Kind::kWritten, cell.writer - 1};
  }
  if (access == Access::kRead || cell.reader == 0 || cell.reader == self || cell.read < block_barrier_) return {};
  if (cell.reader == kManyWarps) return {Conflict::Kind::kRead, -1};
  const bool several = (cell.reader & kLanesOfWarp) != 0;
  const unsigned warp = several ? cell.reader & ~kLanesOfWarp : (cell.reader - 1U) / kLanes;
  if (precedes(cell.read, warp, actor)) return {};
  return {Conflict::Kind::kRead, several ? -1 : cell.reader - 1};
}

SharedMemory::Cell SharedMemory::noted(Cell cell, Access access, const Actor& actor) const {
  const std::uint16_t self = counted(actor.thread);
  const unsigned warp = actor.thread / kLanes;
  if (access == Access::kWrite) {
    cell.writer = self;
    cell.written = now_;
    cell.reader = 0;
    return cell;
  }
  const bool several = (cell.reader & kLanesOfWarp) != 0;
  const unsigned earlier = several ? cell.reader & ~kLanesOfWarp : (cell.reader - 1U) / kLanes;
  if (cell.reader == 0 || cell.reader == self ||
      precedes(cell.read, cell.reader == kManyWarps ? ~0U : earlier, actor)) {
    cell.reader = self;
  } else if (cell.reader != kManyWarps && earlier == warp) {
    cell.reader = static_cast<std::uint16_t>(kLanesOfWarp | warp);
  } else {
    cell.reader = kManyWarps;
  }
  cell.read = now_;
  return cell;
}

SharedMemory::Conflict SharedMemory::note(Access access, std::size_t address, std::size_t bytes, const Actor& actor) {
  Cell* const cells = cells_.data() + address;
  Cell before, after;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i == 0 || !(cells[i] == before)) {  // bytes of a word mostly share their past
      before = cells[i];
      if (const Conflict found = conflict(before, access, actor)) return found;
      after = noted(before, access, actor);
    }
    cells[i] = after;
  }
  return {};
}

void SharedMemory::start_copy(std::size_t address, std::size_t bytes, const Actor& actor) {
  for (std::size_t i = 0; i < bytes; ++i) cells_[address + i].copier = counted(actor.thread);
}

void SharedMemory::finish_copy(std::size_t address, const void* from, std::size_t bytes, std::size_t given,
                               const Actor& actor) {
  std::memcpy(at(address), from, given);
  std::memset(at(address + given), 0, bytes - given);
  for (std::size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells_[address + i];
    cell = noted(cell, Access::kWrite, actor);
    cell.copier = 0;
  }
}

}  // namespace teratron::emulated::ptx
