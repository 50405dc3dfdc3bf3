#include "emulated_gpu/ptx/bulk_copies.h"

#include <fmt/format.h>

#include <cstring>

#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/opcodes.h"

namespace teratron::emulated::ptx {

BulkCopy BulkCopies::take() {
  order_ = order_ * 1664525 + 1013904223;  // a linear congruential generator: the order need not be good, but differ
  const auto at = static_cast<std::ptrdiff_t>((order_ >> 16) % under_way_.size());
  const BulkCopy next = under_way_[static_cast<std::size_t>(at)];
  under_way_.erase(under_way_.begin() + at);
  return next;
}

namespace {

constexpr std::uint64_t kDestinationAlignment = 128, kMapAlignment = 64;

// Rows: destination, tensor map, an element of each axis, mbarrier.
template <unsigned kAxes>
void start_tensor_copy(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto to = addresses(warp, instruction.rows[0], instruction.wide_address, instruction.offset);
  const auto map = addresses(warp, instruction.rows[1], true, instruction.source_offset);
  const auto mbarrier = addresses(warp, instruction.rows[2 + kAxes], false, 0);
  for_each_lane(mask, [&](unsigned lane) {
    BulkCopy copy{.to = to[lane],
                  .mbarrier = mbarrier[lane],
                  .map = {},
                  .first = {},
                  .clock = {},
                  .warp = &warp,
                  .lane = lane,
                  .instruction = &instruction};
    for (unsigned axis = 0; axis < kAxes; ++axis) {
      copy.first[axis] = read<std::int32_t>(warp, instruction.rows[2 + axis])[lane];
    }
    if (map[lane] % kMapAlignment != 0) block.fault("a misaligned tensor map", warp, lane, instruction);
    std::memcpy(&copy.map, block.parameter(map[lane], sizeof(TensorMap), warp, lane, instruction), sizeof(TensorMap));
    if (copy.map.magic != TensorMap::kMagic || copy.map.axes != kAxes) {
      block.fault(fmt::format("a copy by what is no tensor map of {} axes", kAxes), warp, lane, instruction);
    }
    block.start_bulk_copy(copy);
  });
}

// Calls visit(offset in the box, address) for each row of the box: its elements along the fastest axis. Address 0: the
// row is outside the tensor.
template <class Visit>
void for_each_row(const BulkCopy& copy, const Visit& visit) {
  const TensorMap& map = copy.map;
  const std::uint64_t row_bytes = std::uint64_t{map.box[0]} * map.element_bytes, rows = map.box_bytes() / row_bytes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t rest = row, address = map.address;
    bool inside = true;
    for (unsigned axis = 1; axis < map.axes; ++axis) {
      const std::int64_t at = copy.first[axis] + static_cast<std::int64_t>(rest % map.box[axis]);
      rest /= map.box[axis];
      inside = inside && at >= 0 && at < map.sizes[axis];
      address += static_cast<std::uint64_t>(at) * map.strides[axis - 1];
    }
    visit(row * row_bytes, inside ? address : 0);
  }
}

}  // namespace

void Block::start_bulk_copy(BulkCopy copy) {
  const auto fail = [&](const std::string& what) { fault(what, *copy.warp, copy.lane, *copy.instruction); };
  const std::uint64_t bytes = copy.map.box_bytes();
  if (copy.to % kDestinationAlignment != 0) fail("copies to a misaligned address of shared memory");
  if (copy.to + bytes > shared_.bytes())
    fail(fmt::format("copies beyond shared memory, which has {}", shared_.bytes()));
  const Mbarrier& mbarrier = mbarrier_at(copy.mbarrier, *copy.warp, copy.lane, *copy.instruction);
  if (!shared_.is_fenced(copy.mbarrier)) {
    fail("copies with an mbarrier that was made without fence.proxy.async after it");
  }
  if (const auto conflict = shared_.start_bulk_copy(copy.to, bytes, mbarrier.number, actor(*copy.warp, copy.lane))) {
    fail(conflict.text(SharedMemory::Access::kWrite));
  }
  copy.clock = copy.warp->clock;
  copies_in_bulk_.start(copy);
}

// The copy that arrives next.
void Block::finish_bulk_copy() {
  const BulkCopy copy = copies_in_bulk_.take();
  const TensorMap& map = copy.map;
  std::vector<std::byte> box(map.box_bytes());
  const std::int64_t first = copy.first[0], size = map.sizes[0];
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, map.box[0]);
  const std::int64_t end = std::clamp<std::int64_t>(size - first, begin, map.box[0]);
  for_each_row(copy, [&](std::uint64_t offset, std::uint64_t address) {
    if (address == 0 || end == begin) return;
    const auto bytes = static_cast<std::uint64_t>(end - begin) * map.element_bytes;
    const std::uint64_t from = address + static_cast<std::uint64_t>((first + begin) * map.element_bytes);
    if (!global_.holds(from, bytes)) {
      fault("copies (cp.async.bulk) from outside every allocation", *copy.warp, copy.lane, *copy.instruction);
    }
    std::memcpy(box.data() + offset + begin * map.element_bytes, reinterpret_cast<const void*>(from), bytes);
  });
  std::vector<std::byte> placed(box.size());
  for (std::uint64_t at = 0; at < box.size(); at += SharedMemory::kChunk) {
    const std::uint64_t to = swizzled(copy.to + at, map.swizzle_bits) - copy.to;
    std::memcpy(placed.data() + to, box.data() + at, SharedMemory::kChunk);
  }
  Mbarrier& mbarrier = mbarrier_at(copy.mbarrier, *copy.warp, copy.lane, *copy.instruction);
  shared_.finish_bulk_copy(copy.to, placed.data(), placed.size(), mbarrier.number);
  mbarrier.arrivals.merge(copy.clock);
  mbarrier.arrivals.before[Clock::kCopies + mbarrier.number] = shared_.tick();
  mbarrier.bytes -= static_cast<std::int64_t>(box.size());
  mbarrier.end_phase_if_complete();
}

void add_bulk_copies(Opcodes& opcodes) {
  opcodes["cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"] = {
      .run = start_tensor_copy<4>, .outputs = 0, .widths = {kAnyWidth, kAnyWidth, kAnyWidth}, .operands = 7};
}

}  // namespace teratron::emulated::ptx
