// From a kernel's PTX to what is executed.
#pragma once

#include "emulated_gpu/ptx/kernel_text.h"
#include "emulated_gpu/ptx/program.h"

namespace teratron::emulated::ptx {

// InternalError that names the line, for an instruction that opcodes.h does not have or operands that do not fit it.
Program decode(const KernelText& kernel);

// Gives each register its row, from its number in `widths` (bytes of each), which the instructions' rows hold so far.
// Registers that are never in use at the same time share rows: nvcc numbers thousands, of which some hundreds are.
void assign_rows(Program& program, const std::vector<std::uint8_t>& widths);

}  // namespace teratron::emulated::ptx
