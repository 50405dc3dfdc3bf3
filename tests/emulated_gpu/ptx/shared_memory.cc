#include "emulated_gpu/ptx/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulated_gpu/ptx/program.h"

namespace teratron::emulated::ptx {
namespace {

// Readers of one byte that are several: lanes of one warp, or of more.
constexpr std::uint16_t kLanesOfWarp = 0x8000, kManyWarps = 0xffff;
// Writers and copiers that are bulk copies.
constexpr std::uint16_t kBulk = 0x4000;
constexpr std::uint32_t kUnderWay = ~0U;  // the stamp of a product's read, which precedes nothing

std::uint16_t counted(unsigned thread) { return static_cast<std::uint16_t>(thread + 1); }

}  // namespace

std::string SharedMemory::Conflict::text(Access access) const {
  const std::string who = other >= 0 ? fmt::format("thread {}", other) : "several threads";
  const char* const what = access == Access::kRead ? "reads" : "writes";
  switch (kind) {
    case Kind::kBulkCopied:
      return fmt::format("{} shared memory that a bulk copy wrote whose mbarrier it did not wait for (a race)", what);
    case Kind::kBulkArrives: return fmt::format("{} shared memory to which a bulk copy is under way", what);
    case Kind::kProduct:
      return fmt::format("{} shared memory that a product (wgmma) of warp {} reads, which is not known to be done",
                         what, other);
    case Kind::kNotFenced:
      return fmt::format("{} shared memory that {} wrote, by the asynchronous proxy without fence.proxy.async", what,
                         who);
    default: break;
  }
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
    fenced_.fill(0);
    reads_.clear();
    now_ = 1;
  }
  reads_.resize(std::max(reads_.size(), (bytes / kChunk + 1) * kMostWarps));
  std::for_each(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(bytes),
                [](Cell& cell) { cell.copier = 0; });
  std::fill(products_.begin(), products_.end(), 0U);
  pass_block_barrier();
}

bool SharedMemory::precedes(std::uint32_t stamp, unsigned earlier_warp, const Actor& actor) const {
  return stamp < block_barrier_ || (earlier_warp == actor.thread / kLanes && stamp < actor.warp_barrier) ||
         (actor.clock != nullptr && earlier_warp < actor.clock->before.size() &&
          stamp < actor.clock->before[earlier_warp]);
}

bool SharedMemory::write_precedes(const Cell& cell, const Actor& actor) const {
  if (cell.writer == 0 || cell.writer == counted(actor.thread)) return true;
  const bool is_bulk = (cell.writer & kBulk) != 0;
  return precedes(cell.written, is_bulk ? Clock::kCopies + (cell.writer & ~kBulk) : (cell.writer - 1U) / kLanes, actor);
}

// Race of a write with products that read the chunk.
SharedMemory::Conflict SharedMemory::product_conflict(std::size_t chunk, const Actor& actor) const {
  if (products_.empty()) return {};
  for (unsigned warp = 0; warp < kMostWarps; ++warp) {
    const std::uint32_t stamp = products_[chunk * kMostWarps + warp];
    if (stamp != 0 && !precedes(stamp, Clock::kProducts + warp, actor)) {
      return {Conflict::Kind::kProduct, static_cast<int>(warp)};
    }
  }
  return {};
}

// Race of a write with reads of the cell. Of several warps that read it, each counts as having read it when it last
// read the chunk.
SharedMemory::Conflict SharedMemory::read_conflict(const Cell& cell, std::size_t chunk, const Actor& actor) const {
  if (cell.reader == 0 || cell.reader == counted(actor.thread) || cell.read < block_barrier_) return {};
  if (cell.reader != kManyWarps) {
    const bool several = (cell.reader & kLanesOfWarp) != 0;
    const unsigned warp = several ? cell.reader & ~kLanesOfWarp : (cell.reader - 1U) / kLanes;
    if (precedes(cell.read, warp, actor)) return {};
    return {Conflict::Kind::kRead, several ? -1 : cell.reader - 1};
  }
  for (unsigned warp = 0; warp < kMostWarps; ++warp) {
    if (!precedes(reads_[chunk * kMostWarps + warp], warp, actor)) return {Conflict::Kind::kRead, -1};
  }
  return {};
}

SharedMemory::Conflict SharedMemory::conflict(std::size_t address, Access access, const Actor& actor) const {
  const Cell& cell = cells_[address];
  if ((cell.copier & kBulk) != 0) return {Conflict::Kind::kBulkArrives};
  if (cell.copier != 0) return {Conflict::Kind::kCopied, cell.copier - 1};
  if (!write_precedes(cell, actor)) {
    if ((cell.writer & kBulk) != 0) return {Conflict::Kind::kBulkCopied};
    return {Conflict::Kind::kWritten, cell.writer - 1};
  }
  return access == Access::kRead ? Conflict{} : read_conflict(cell, address / kChunk, actor);
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
      if (const Conflict found = conflict(address + i, access, actor)) return found;
      after = noted(before, access, actor);
    }
    cells[i] = after;
  }
  if (access == Access::kWrite) return product_conflict(address / kChunk, actor);
  reads_[address / kChunk * kMostWarps + actor.thread / kLanes] = now_;
  return {};
}

SharedMemory::Conflict SharedMemory::ordered(std::size_t address, std::size_t bytes, const Actor& actor) const {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (const Conflict found = conflict(address + i, Access::kRead, actor)) return found;
  }
  return {};
}

SharedMemory::Conflict SharedMemory::note_product(std::size_t address, bool is_done, const Actor& actor) {
  const Cell* const cells = cells_.data() + address;
  for (std::size_t i = 0; i < kChunk; ++i) {
    if (i > 0 && cells[i] == cells[i - 1]) continue;
    if (const Conflict found = conflict(address + i, Access::kRead, actor)) return found;
    const bool is_generic = cells[i].writer != 0 && (cells[i].writer & kBulk) == 0;
    if (is_generic && cells[i].written >= fenced_[cells[i].writer - 1U]) {
      return {Conflict::Kind::kNotFenced, cells[i].writer - 1};
    }
  }
  if (products_.empty()) products_.resize(memory_.size() / kChunk * kMostWarps + kMostWarps);
  products_[address / kChunk * kMostWarps + actor.thread / kLanes] = is_done ? now_ : kUnderWay;
  return {};
}

SharedMemory::Conflict SharedMemory::start_bulk_copy(std::size_t address, std::size_t bytes, unsigned mbarrier,
                                                     const Actor& actor) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (const Conflict found = conflict(address + i, Access::kWrite, actor)) return found;
    if (i % kChunk != 0) continue;
    if (const Conflict found = product_conflict((address + i) / kChunk, actor)) return found;
  }
  for (std::size_t i = 0; i < bytes; ++i) cells_[address + i].copier = static_cast<std::uint16_t>(kBulk | mbarrier);
  return {};
}

void SharedMemory::finish_bulk_copy(std::size_t address, const std::byte* from, std::size_t bytes, unsigned mbarrier) {
  std::memcpy(at(address), from, bytes);
  Cell copied;
  copied.written = now_;
  copied.writer = static_cast<std::uint16_t>(kBulk | mbarrier);
  std::fill_n(cells_.begin() + static_cast<std::ptrdiff_t>(address), bytes, copied);
}

bool SharedMemory::is_fenced(std::size_t address) const {
  const Cell& cell = cells_[address];
  return cell.writer != 0 && (cell.writer & kBulk) == 0 && cell.written < fenced_[cell.writer - 1U];
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
