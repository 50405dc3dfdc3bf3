// wgmma: products whose operands lie in shared memory, where descriptors say, or the left one in registers.
#include "emulated_gpu/ptx/warpgroup_products.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/dtype.h"
#include "emulated_gpu/ptx/block.h"
#include "emulated_gpu/ptx/opcodes.h"
#include "emulated_gpu/tensor_core.h"
#include "emulated_gpu/tensor_map.h"

namespace teratron::emulated::ptx {

void WarpProducts::reset(std::size_t register_units) {
  groups_.assign(1, {});
  accessed_.assign(register_units / kLanes + 1, 0);
  sums_.assign(accessed_.size(), 0);
  operands_.assign(accessed_.size(), 0);
  executed_ = fence_ = 0;
}

const char* WarpProducts::watch(const Instruction& instruction) {
  ++executed_;
  const char* found = nullptr;
  for (unsigned i = 0; i < instruction.operands; ++i) {
    const Row row = instruction.row(i);
    if ((row & kConstant) != 0) continue;
    const bool writes = i < instruction.outputs;
    accessed_[row / kLanes] = executed_;
    if (sums_[row / kLanes] != 0) {
      found = writes ? "writes a register to which a product (wgmma) adds"
                     : "reads a register to which a product (wgmma) adds";
    }
    if (writes && operands_[row / kLanes] != 0) found = "writes a register that a product (wgmma) reads";
  }
  return found;
}

void WarpProducts::add(const Group& product) {
  Group& group = groups_.back();
  for (const Row row : product.sums) ++sums_[row / kLanes];
  for (const Row row : product.operands) ++operands_[row / kLanes];
  group.sums.insert(group.sums.end(), product.sums.begin(), product.sums.end());
  group.operands.insert(group.operands.end(), product.operands.begin(), product.operands.end());
  group.chunks.insert(group.chunks.end(), product.chunks.begin(), product.chunks.end());
}

WarpProducts::Group WarpProducts::take_oldest() {
  Group group = std::move(groups_.front());
  groups_.erase(groups_.begin());
  for (const Row row : group.sums) --sums_[row / kLanes];
  for (const Row row : group.operands) --operands_[row / kLanes];
  return group;
}

namespace {

constexpr unsigned kDepth = 16, kWarpRows = 16;  // k of a product of 16-bit values; rows of a warp
using Terms = std::array<double, kDepth>;

// The PTX ISA's matrix descriptor. Offsets are in bytes.
struct Descriptor {
  std::uint64_t start, leading, stride;
  unsigned swizzle_bits;
  bool is_valid;

  explicit Descriptor(std::uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4),
        swizzle_bits(bits >> 62 == 0 ? 0 : 4 - static_cast<unsigned>(bits >> 62)),
        is_valid((bits & 0x3fffc000c000c000U) == 0) {}  // what is not used, and the base offset, which we leave 0

  // The address of the 16 bytes of element (outer, k), where k runs through memory, or of (outer, k), where outer does.
  // In both cases a matrix is made of groups of eight rows, each as wide as the swizzle's span.
  std::uint64_t chunk(unsigned outer, unsigned k, bool outer_is_contiguous) const {
    const unsigned row = outer_is_contiguous ? k : outer, column = (outer_is_contiguous ? outer : k) / 8;
    const std::uint64_t span = 16U << swizzle_bits, chunks = span / 16;
    // Without a swizzle the two offsets change places where the rows are those of k.
    const bool swapped = swizzle_bits == 0 && outer_is_contiguous;
    const std::uint64_t of_rows = swapped ? leading : stride, of_columns = swapped ? stride : leading;
    return swizzled(start + row % 8 * span + row / 8 * of_rows + column % chunks * 16 + column / chunks * of_columns,
                    swizzle_bits);
  }
};

struct HalfNumbers {
  static double value(std::uint16_t bits) { return f16_to_float(bits); }
};
struct BrainNumbers {
  static double value(std::uint16_t bits) { return bf16_to_float(bits); }
};

// One product of a warp: its 16 rows of the warpgroup's 64.
template <class Number>
class Product {
 public:
  Product(Block& block, Warp& warp, const Instruction& instruction, bool left_in_registers)
      : block_(block),
        warp_(warp),
        instruction_(instruction),
        left_in_registers_(left_in_registers),
        sums_(instruction.operands - (left_in_registers ? 9U : 7U)),
        columns_(2 * sums_) {}

  void run() {
    const unsigned after = sums_ + (left_in_registers_ ? 4 : 1);  // the right operand's descriptor
    for (unsigned i = after + 2; i < after + 4; ++i) {
      if (number(i) != 1) fail("a product of negated operands, which the interpreter does not have");
    }
    const bool accumulates = (warp_.row(instruction_.row(after + 1))[0] & 1) != 0;
    const std::uint64_t right = descriptor(after);
    block_.come_together(warp_, right, instruction_);
    check_registers(after);
    if (left_in_registers_) {
      read_left_registers();
    } else {
      const std::uint64_t left = descriptor(sums_);
      block_.come_together(warp_, left, instruction_);
      read_shared(Descriptor(left), number(after + 4) != 0, warp_.number % 4 * kWarpRows, left_);
    }
    right_.resize(columns_);
    read_shared(Descriptor(right), number(instruction_.operands - 1U) != 0, 0, right_);
    add_up(accumulates);
    warp_.products->add(group_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, unsigned lane = 0) const {
    block_.fault(what, warp_, lane, instruction_);
  }
  std::uint32_t number(unsigned operand) const { return warp_.row(instruction_.row(operand))[0]; }

  std::uint64_t descriptor(unsigned operand) const {
    const auto of_lanes = read<std::uint64_t>(warp_, instruction_.row(operand));
    for (unsigned lane = 1; lane < kLanes; ++lane) {
      if (of_lanes[lane] != of_lanes[0]) fail("a descriptor that is not that of the others", lane);
    }
    if (!Descriptor(of_lanes[0]).is_valid) fail(fmt::format("a descriptor that cannot be: {:#x}", of_lanes[0]));
    return of_lanes[0];
  }

  void check_registers(unsigned after) {
    for (unsigned i = 0; i < after; ++i) {
      if (i >= sums_ && !left_in_registers_) continue;
      const Row row = instruction_.row(i);
      if ((row & kConstant) != 0) fail("a product of constants");
      if (!warp_.products->is_fenced(row)) {
        fail("multiplies registers that were used without wgmma.fence after it");
      }
      (i < sums_ ? group_.sums : group_.operands).push_back(row);
    }
  }

  void read_left_registers() {
    left_.resize(kWarpRows);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t pair = warp_.row(instruction_.row(sums_ + i))[lane];
        double* const to = &left_[lane / 4 + 8 * (i % 2)][2 * (lane % 4) + 8 * (i / 2)];
        to[0] = Number::value(static_cast<std::uint16_t>(pair));
        to[1] = Number::value(static_cast<std::uint16_t>(pair >> 16));
      }
    }
  }

  // Rows from `first` on, as many as `to` has or 16.
  void read_shared(const Descriptor& from, bool outer_is_contiguous, unsigned first, std::vector<Terms>& to) {
    if (to.empty()) to.resize(kWarpRows);
    const unsigned outer_step = outer_is_contiguous ? 8 : 1, k_step = outer_is_contiguous ? 1 : 8;
    for (unsigned outer = 0; outer < to.size(); outer += outer_step) {
      for (unsigned k = 0; k < kDepth; k += k_step) {
        const std::uint64_t at = from.chunk(first + outer, k, outer_is_contiguous);
        if (at + SharedMemory::kChunk > block_.shared().bytes()) fail("multiplies what is beyond shared memory");
        if (const auto conflict = block_.shared().note_product(at, false, block_.actor(warp_, 0))) {
          fail(conflict.text(SharedMemory::Access::kRead));
        }
        group_.chunks.push_back(at);
        std::array<std::uint16_t, 8> values;
        std::memcpy(values.data(), block_.shared().at(at), sizeof(values));
        for (unsigned i = 0; i < 8; ++i) {
          to[outer + (outer_is_contiguous ? i : 0)][k + (outer_is_contiguous ? 0 : i)] = Number::value(values[i]);
        }
      }
    }
  }

  void add_up(bool accumulates) {
    for (unsigned i = 0; i < sums_; ++i) {
      Lanes<float> sums = {};
      if (accumulates) sums = read<float>(warp_, instruction_.row(i));
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const Terms& left = left_[lane / 4 + 8 * (i % 4 / 2)];
        const Terms& right = right_[i / 4 * 8 + 2 * (lane % 4) + i % 2];
        Terms products;
        for (unsigned k = 0; k < kDepth; ++k) products[k] = left[k] * right[k];
        sums[lane] = tensor_core_sum(sums[lane], products);
      }
      write(warp_, instruction_.row(i), kAllLanes, sums);
    }
  }

  Block& block_;
  Warp& warp_;
  const Instruction& instruction_;
  const bool left_in_registers_;
  const unsigned sums_, columns_;  // of a lane; of the product
  std::vector<Terms> left_, right_;
  WarpProducts::Group group_;
};

template <class Number, bool kLeftInRegisters>
void multiply(Block& block, Warp& warp, const Instruction& instruction, LaneMask) {
  Product<Number>(block, warp, instruction, kLeftInRegisters).run();
}

void fence(Block& block, Warp& warp, const Instruction& instruction, LaneMask) {
  block.come_together(warp, 0, instruction);
  warp.products->fence();
}

void commit(Block& block, Warp& warp, const Instruction& instruction, LaneMask) {
  block.come_together(warp, 0, instruction);
  warp.products->commit();
}

// Looks again at memory that the products read: nobody may have written there.
void wait(Block& block, Warp& warp, const Instruction& instruction, LaneMask) {
  block.come_together(warp, 0, instruction);
  const std::uint32_t groups = warp.row(instruction.rows[0])[0];
  while (warp.products->has_more_than(groups)) {
    for (const std::uint64_t chunk : warp.products->take_oldest().chunks) {
      if (const auto conflict = block.shared().note_product(chunk, true, block.actor(warp, 0))) {
        block.fault("by a product that is waited for: " + conflict.text(SharedMemory::Access::kRead), warp, 0,
                    instruction);
      }
    }
  }
  warp.clock.before[Clock::kProducts + warp.number] = block.shared().tick();
}

template <class Number>
void add_products(Opcodes& opcodes, const std::string& type) {
  for (unsigned columns = 8; columns <= 256; columns += 8) {
    const std::string name = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{}", columns, type, type);
    const auto operands = static_cast<std::uint8_t>(columns / 2);
    Opcode opcode{.run = multiply<Number, false>,
                  .kind = Kind::kWholeWarp,
                  .outputs = 0,
                  .widths = {4, 8, 8, 4, 4},
                  .operands = static_cast<std::uint8_t>(operands + 7),
                  .role = Role::kProduct};
    opcodes[name] = opcode;
    opcode.run = multiply<Number, true>;
    opcode.widths = {4, 4, 8, 4, 4};
    opcode.operands = static_cast<std::uint8_t>(operands + 9);
    opcodes[name + ".registers"] = opcode;
  }
}

}  // namespace

void add_warpgroup_products(Opcodes& opcodes) {
  add_products<BrainNumbers>(opcodes, "bf16");
  add_products<HalfNumbers>(opcodes, "f16");
  opcodes["wgmma.fence.sync.aligned"] = {.run = fence, .kind = Kind::kWholeWarp, .outputs = 0};
  opcodes["wgmma.commit_group.sync.aligned"] = {.run = commit, .kind = Kind::kWholeWarp, .outputs = 0};
  opcodes["wgmma.wait_group.sync.aligned"] = {.run = wait, .kind = Kind::kWholeWarp, .outputs = 0, .operands = 1};
}

}  // namespace teratron::emulated::ptx
