// Working memory of one thread: grown at first use and kept, so that a training step allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace teratron {

// Who uses a block. Two uses that are alive at once on one thread need two names.
enum class Scratch { kReduction, kPanels, kTileA, kTileB, kKeys, kValues, kQueries, kOutputs, kRows, kCount };

// At least `count` floats, 64-byte aligned, undefined contents, valid until this thread asks for `use` again.
float* scratch_floats(Scratch use, std::int64_t count);

}  // namespace teratron
