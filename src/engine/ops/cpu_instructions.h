// Which of the processor's instructions the CPU's kernels use.
#pragma once

#include <string_view>

namespace teratron {

// A set of instructions. Runs with the same set have the same bits on all processors, but for `baseline`, where the C
// library's functions may differ.
struct Instructions {
  std::string_view name;  // x86-64: baseline, avx2, avx512 or avx512-bf16; Arm: neon or bfmmla
  bool bf16_products;     // products of bf16 by the processor's instruction (products/bf16_kernels.h)
  bool vnni_products;     // products with weights in tiles by VPDPBUSD; other kernels give the same bits
  bool is_asked_for;      // by the user
};

// The set of this process: the one that TERATRON_INSTRUCTIONS of its environment names or, without it, the one that is
// fastest here. The first call chooses, and every back end calls it before its first kernel. UserError: the name is
// unknown, or the processor or this build lacks the set.
const Instructions& instructions_in_use();

// The set that `name` asks for; empty: the fastest one. Changes nothing. UserError: as above.
Instructions find_instructions(std::string_view name);

}  // namespace teratron
