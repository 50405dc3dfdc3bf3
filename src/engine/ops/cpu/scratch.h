// Working memory of one thread: grown at first use and kept, so that a training step allocates nothing after its first.
// Plans count it (ops/working_memory.h): beside the code that takes a block stands a function that bounds its size.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace teratron {

struct CpuOptions;
struct WorkShapes;

// Use of a block. Two uses that are alive at once on one thread need two names.
enum class Scratch { kReduction, kPanels, kTileA, kTileB, kKeys, kValues, kQueries, kRows, kKeySums, kLowRank, kCount };

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

// Include the scratch memory of a norm's backward pass over [rows, hidden], and of the sum of squares of a tensor.
void include_norm_backward(std::int64_t rows, std::int64_t hidden, ScratchSizes& sizes);
void include_sum_of_squares(std::int64_t elements, ScratchSizes& sizes);

// Upper bound of a thread's blocks. Its helpers take all but the kPanels and kReduction of the thread that starts
// loops.
ScratchSizes most_scratch(const WorkShapes& work, const CpuOptions& options, bool starts_loops);

ScratchSizes scratch_sizes();  // blocks of the calling thread now: tests compare plans with them

}  // namespace teratron
