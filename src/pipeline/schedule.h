// Schedules of pipeline parallelism are data: for every stage the list of what it does, in order. The same list is
// checked (checker.h), timed (simulate.h), drawn (drawing.h) and executed.
//
// A model is cut into cells, runs of layers; with V virtual stages, stage k of K holds the cells k, K + k, 2K + k, ...
// A micro-batch goes through the cells in order, whole or in slices of tokens (TeraPipe, arXiv 2102.07988): a cell may
// work on slice s once it has worked on the slices before it, whose keys and values slice s attends to. Backward takes
// the slices last to first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace teratron::pipeline {

enum class Pass {
  kForward,
  kBackward,        // gradients of the input and of the weights
  kBackwardInput,   // the input's alone, which is all that the cell before waits for
  kBackwardWeight,  // the weights' alone, any time after
};

constexpr bool makes_input_gradient(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardInput; }
constexpr bool makes_weight_gradient(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardWeight; }

// What a stage does at a time: one pass of one slice of one micro-batch through one of its cells.
struct Action {
  Pass pass = Pass::kForward;
  int micro_batch = 0, slice = 0;
  int chunk = 0;  // which of the stage's cells: cell chunk * stages + stage
  bool operator==(const Action&) const = default;
};

struct Schedule {
  int stages = 1, micro_batches = 1;
  int slices = 1;                            // of tokens, a micro-batch
  int virtual_stages = 1;                    // cells a stage
  std::vector<std::vector<Action>> actions;  // [stage], in order

  int cells() const { return stages * virtual_stages; }
  int cell(int stage, const Action& action) const { return action.chunk * stages + stage; }
  int stage_of(int cell) const { return cell % stages; }
  // Slices times cells that one stage sees: as many forwards as it has to do.
  std::size_t forwards_per_stage() const {
    return static_cast<std::size_t>(micro_batches) * static_cast<std::size_t>(slices) *
           static_cast<std::size_t>(virtual_stages);
  }
  bool operator==(const Schedule&) const = default;
};

// The schedule of the first `count` micro-batches of this one: each stage's list without the others. Fit to run if this
// one is, since a micro-batch needs nothing of another, and with no more alive at any moment.
Schedule first_micro_batches(const Schedule& schedule, int count);

// "forward of micro-batch 3, slice 1, chunk 0"; slice and chunk only where the schedule has several.
std::string text_of(const Schedule& schedule, const Action& action);

}  // namespace teratron::pipeline
