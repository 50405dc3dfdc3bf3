// The instructions that there are, by their full names ("add.s32"): what does them, and what their operands are. Those
// that nvcc writes for our kernels, and no others: a kernel with another one is refused when it is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "emulated_gpu/ptx/program.h"

namespace teratron::emulated::ptx {

// Bytes of an operand's register: 4 (also for shorter types and predicates) or 8.
constexpr std::uint8_t kAnyWidth = 0;  // ld, st, and what the decoder looks at itself

struct Opcode {
  Handler run = nullptr;
  Kind kind = Kind::kPlain;
  unsigned outputs = 1;  // operands as written
  std::array<std::uint8_t, 5> widths = {4, 4, 4, 4, 4};
  std::uint8_t operands = 0;  // with each element of a vector; 0: the decoder does not count them
  Role role = Role::kNone;
};

using Opcodes = std::unordered_map<std::string, Opcode>;

// Each adds those of a file.
void add_arithmetic(Opcodes& opcodes);
void add_bit_operations(Opcodes& opcodes);
void add_comparisons(Opcodes& opcodes);
void add_conversions(Opcodes& opcodes);
void add_memory_accesses(Opcodes& opcodes);
void add_warp_exchanges(Opcodes& opcodes);
void add_mbarriers(Opcodes& opcodes);
void add_bulk_copies(Opcodes& opcodes);
void add_warpgroup_products(Opcodes& opcodes);

const Opcodes& opcodes();

}  // namespace teratron::emulated::ptx
