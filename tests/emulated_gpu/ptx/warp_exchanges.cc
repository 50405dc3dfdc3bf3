// Instructions that the lanes of a warp do together: shfl, ldmatrix, mma.
#include <cstring>
#include <optional>

#include "base/dtype.h"
#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/opcodes.h"
#include "emulated_gpu/tensor_core.h"

namespace teratron::emulated::ptx {
namespace {

enum class Shuffle { kIndex, kUp, kDown, kButterfly };

// The lane that `lane` reads; none where its segment ends (PTX ISA, shfl.sync).
template <Shuffle kShuffle>
std::optional<unsigned> source_of(unsigned lane, unsigned by, unsigned bounds) {
  const unsigned clamp = bounds & 31, segment = bounds >> 8 & 31;
  const unsigned first = lane & segment, last = first | (clamp & ~segment);
  by &= 31;
  switch (kShuffle) {
    case Shuffle::kUp: return lane >= by && lane - by >= last ? std::optional(lane - by) : std::nullopt;
    case Shuffle::kDown: return lane + by <= last ? std::optional(lane + by) : std::nullopt;
    case Shuffle::kButterfly: return (lane ^ by) <= last ? std::optional(lane ^ by) : std::nullopt;
    case Shuffle::kIndex: break;
  }
  const unsigned from = first | (by & ~segment);
  return from <= last ? std::optional(from) : std::nullopt;
}

// Rows: result, whether it came from another lane (may be absent), value, by, bounds, mask of lanes.
template <Shuffle kShuffle>
void shuffle(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto values = read<std::uint32_t>(warp, instruction.rows[2]);
  const auto by = read<std::uint32_t>(warp, instruction.rows[3]),
             bounds = read<std::uint32_t>(warp, instruction.rows[4]);
  Lanes<std::uint32_t> results = {}, found = {};
  for_each_lane(mask, [&](unsigned lane) {
    const std::optional<unsigned> from = source_of<kShuffle>(lane, by[lane], bounds[lane]);
    if (from && (mask >> *from & 1) == 0) {
      block.fault("shuffles a value of a lane that is not there", warp, lane, instruction);
    }
    results[lane] = values[from.value_or(lane)];
    found[lane] = from ? 1 : 0;
  });
  write(warp, instruction.rows[0], mask, results);
  if (instruction.rows[1] != kNoRow) write(warp, instruction.rows[1], mask, found);
}

// ldmatrix .x4: four matrices of 8 rows of 16 bytes, whose addresses the lanes give.
template <bool kTransposed>
void load_matrices(Block& block, Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto from = addresses(warp, instruction.rows[4], instruction.wide_address, instruction.offset);
  std::array<std::array<std::uint16_t, 8>, kLanes> rows;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::memcpy(rows[lane].data(),
                block.access(Space::kShared, SharedMemory::Access::kRead, from[lane], 16, warp, lane, instruction), 16);
  }
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    Lanes<std::uint32_t> pairs;
    const auto* const of = rows.data() + 8 * matrix;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned outer = lane / 4, inner = 2 * (lane % 4);
      const std::uint32_t low = kTransposed ? of[inner][outer] : of[outer][inner];
      const std::uint32_t high = kTransposed ? of[inner + 1][outer] : of[outer][inner + 1];
      pairs[lane] = high << 16 | low;
    }
    write(warp, instruction.rows[matrix], mask, pairs);
  }
}

struct HalfNumber {
  static double value(std::uint32_t bits) { return f16_to_float(static_cast<std::uint16_t>(bits)); }
};
struct BrainNumber {
  static double value(std::uint32_t bits) { return bf16_to_float(static_cast<std::uint16_t>(bits)); }
};

// mma.m16n8k16: where the lanes hold the elements of a, b and c is said in ops/cuda/kernels/ptx.h.
template <class Number>
void multiply_matrices(Block&, Warp& warp, const Instruction& instruction, LaneMask mask) {
  double a[16][16], b[8][16];  // b by columns
  const auto put = [&](double* to, unsigned row, unsigned lane) {
    const std::uint32_t pair = warp.row(instruction.rows[row])[lane];
    to[0] = Number::value(pair & 0xffffU);
    to[1] = Number::value(pair >> 16);
  };
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane / 4, pair = 2 * (lane % 4);
    for (unsigned i = 0; i < 4; ++i) put(&a[group + 8 * (i % 2)][pair + 8 * (i / 2)], 4 + i, lane);
    for (unsigned i = 0; i < 2; ++i) put(&b[group][pair + 8 * i], 8 + i, lane);
  }
  std::array<Lanes<float>, 4> sums;
  for (unsigned i = 0; i < 4; ++i) {
    sums[i] = read<float>(warp, instruction.rows[10 + i]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const double* const left = a[lane / 4 + 8 * (i / 2)];
      const double* const right = b[2 * (lane % 4) + i % 2];
      std::array<double, kTensorCoreTerms> products;
      for (std::size_t k = 0; k < products.size(); ++k) products[k] = left[k] * right[k];
      sums[i][lane] = tensor_core_sum(sums[i][lane], products);
    }
  }
  for (unsigned i = 0; i < 4; ++i) write(warp, instruction.rows[i], mask, sums[i]);
}

}  // namespace

void add_warp_exchanges(Opcodes& opcodes) {
  const auto exchange = [](Handler run) { return Opcode{.run = run, .kind = Kind::kExchange}; };
  opcodes["shfl.sync.idx.b32"] = exchange(shuffle<Shuffle::kIndex>);
  opcodes["shfl.sync.up.b32"] = exchange(shuffle<Shuffle::kUp>);
  opcodes["shfl.sync.down.b32"] = exchange(shuffle<Shuffle::kDown>);
  opcodes["shfl.sync.bfly.b32"] = exchange(shuffle<Shuffle::kButterfly>);
  const Opcode matrices{.run = load_matrices<false>, .kind = Kind::kWholeWarp, .widths = {4, kAnyWidth}};
  Opcode transposed = matrices;
  transposed.run = load_matrices<true>;
  opcodes["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = matrices;
  opcodes["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = transposed;
  opcodes["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {.run = multiply_matrices<HalfNumber>,
                                                                  .kind = Kind::kWholeWarp};
  opcodes["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {.run = multiply_matrices<BrainNumber>,
                                                                    .kind = Kind::kWholeWarp};
  opcodes["bar.sync"] = {.kind = Kind::kBlockBarrier, .outputs = 0};
  opcodes["bar.warp.sync"] = {.kind = Kind::kWarpBarrier, .outputs = 0};
}

const Opcodes& opcodes() {
  static const Opcodes all = [] {
    Opcodes made;
    for (const auto add : {add_arithmetic, add_bit_operations, add_comparisons, add_conversions, add_memory_accesses,
                           add_warp_exchanges, add_mbarriers, add_bulk_copies, add_warpgroup_products}) {
      add(made);
    }
    made["bra"] = made["bra.uni"] = {.kind = Kind::kBranch, .outputs = 0};
    made["ret"] = {.kind = Kind::kReturn, .outputs = 0};
    return made;
  }();
  return all;
}

}  // namespace teratron::emulated::ptx
