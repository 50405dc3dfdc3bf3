// Working memory of one thread: grown at first use and kept, so that a training step allocates nothing after its first.
// Plans count it (ops/working_memory.h): what takes a block says how large it may become, beside where it takes it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace teratron {

// Who uses a block. Two uses that are alive at once on one thread need two names.
enum class Scratch { kReduction, kPanels, kTileA, kTileB, kKeys, kValues, kQueries, kOutputs, kRows, kKeySums, kCount };

// At least `count` floats, 64-byte aligned, undefined contents, valid until this thread asks for `use` again.
float* scratch_floats(Scratch use, std::int64_t count);

// Floats of each block of a thread.
class ScratchSizes {
 public:
  std::int64_t operator[](Scratch use) const { return floats_[static_cast<std::size_t>(use)]; }
  void include(Scratch use, std::int64_t count);  // at least so many
  void include(const ScratchSizes& other);
  void clear(Scratch use) { floats_[static_cast<std::size_t>(use)] = 0; }
  std::int64_t bytes() const;

 private:
  std::array<std::int64_t, static_cast<std::size_t>(Scratch::kCount)> floats_ = {};
};

// The most that the gradients of a norm's [rows, hidden] take, and the squares of so many elements.
void include_norm_backward(std::int64_t rows, std::int64_t hidden, ScratchSizes& sizes);
void include_sum_of_squares(std::int64_t elements, ScratchSizes& sizes);

ScratchSizes scratch_sizes();  // that the calling thread has by now: what tests compare plans with

}  // namespace teratron
