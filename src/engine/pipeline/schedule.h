// Schedules of pipeline parallelism are data: for every stage the ordered list of its actions. The same list is checked
// (checker.h), timed (timing/simulate.h), drawn (drawing/drawing.h) and executed.
//
// A model is cut into cells, runs of layers; with V virtual stages, each stage holds V of them (CellMap says which).
// A micro-batch goes through the cells in order, whole or in slices of tokens (TeraPipe, arXiv 2102.07988): a cell may
// work on slice s once it has worked on the slices before it, whose keys and values slice s attends to. Backward takes
// the slices last to first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace teratron::pipeline {

enum class Pass {
  kForward,
  kBackward,        // gradients of the input and of the weights
  kBackwardInput,   // the input's alone, which is all that the cell before waits for
  kBackwardWeight,  // the weights' alone, any time after
  // Joint passes, in which all stages take part together, of vocabulary parallelism (vocabulary_passes.h).
  kEmbedding,
  kHead,  // the loss and its gradient
  kEmbeddingBackward,
};
constexpr std::size_t kPasses = 7;
const char* name_of(Pass pass);  // a literal, "forward"

constexpr bool makes_input_gradient(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardInput; }
constexpr bool makes_weight_gradient(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardWeight; }
// A pass that begins on all stages together, when each has come to it.
constexpr bool is_joint(Pass pass) { return pass >= Pass::kEmbedding; }

// Order in which the model's cells lie on the stages. Row r is the cells rK to rK + K - 1, one on each of the K stages.
enum class Placement {
  kInTurns,  // every row from the first stage to the last: stage k holds the cells k, K + k, 2K + k, ...
  kFolded,   // every other row from the last stage to the first: the V of arXiv 2405.15362, cells k and 2K - 1 - k
};

// Cells of each stage. No other code says where a cell lies.
struct CellMap {
  int stages = 1;
  Placement placement = Placement::kInTurns;

  int cell(int stage, int chunk) const { return chunk * stages + place(stage, chunk); }
  int stage_of(int cell) const { return place(cell % stages, cell / stages); }

 private:
  // A row's mirror image is its own inverse.
  int place(int at, int row) const { return placement == Placement::kFolded && row % 2 == 1 ? stages - 1 - at : at; }
};

// Unit of a stage's work: one pass of one slice of one micro-batch through one of its cells.
struct Action {
  Pass pass = Pass::kForward;
  int micro_batch = 0, slice = 0;
  int chunk = 0;  // which of the stage's cells, in the model's order; of a joint pass, that of the model's end
  bool operator==(const Action&) const = default;
};

struct Schedule {
  int stages = 1, micro_batches = 1;
  int slices = 1;                // of tokens, a micro-batch; the most where they differ
  std::vector<int> slices_each;  // of every micro-batch where they differ; else empty
  int virtual_stages = 1;        // cells a stage
  Placement placement = Placement::kInTurns;
  bool vocabulary_parallel = false;          // embedding and head have passes of their own
  std::vector<std::vector<Action>> actions;  // [stage], in order

  int cells() const { return stages * virtual_stages; }
  CellMap cell_map() const { return {stages, placement}; }
  int cell(int stage, const Action& action) const { return cell_map().cell(stage, action.chunk); }
  int stage_of(int cell) const { return cell_map().stage_of(cell); }
  int slices_of(int micro_batch) const {
    return slices_each.empty() ? slices : slices_each[static_cast<std::size_t>(micro_batch)];
  }
  void set_slices(std::vector<int> of_micro_batches);  // one each
  // Slices times cells that one stage sees: as many forwards as it has to do.
  std::size_t forwards_per_stage() const;
  bool operator==(const Schedule&) const = default;
};

// Cut of the sequences of a micro-batch (TeraPipe, section 3.4: several at a time, each group with its own slices).
struct MicroBatchCut {
  std::int64_t sequences = 1;
  std::vector<std::int64_t> slice_tokens;  // first slice first
  std::int64_t tokens() const;             // of a sequence
  bool operator==(const MicroBatchCut&) const = default;
};

// Cut of a micro-batch in a list whose last element stands for all that follow; the list is not empty.
const MicroBatchCut& cut_of(std::span<const MicroBatchCut> cuts, int micro_batch);

// The schedule of the first `count` micro-batches of this one: each stage's list without the others. Fit to run if this
// one is, since a micro-batch needs nothing of another, and with no more alive at any moment.
Schedule first_micro_batches(const Schedule& schedule, int count);

// The actions of `first`, then those of `second` for the micro-batches after. Both have as many stages and cells.
Schedule one_after_the_other(const Schedule& first, const Schedule& second);

// "forward of micro-batch 3, slice 1, chunk 0"; slice and chunk only where the schedule has several.
std::string text_of(const Schedule& schedule, const Action& action);

}  // namespace teratron::pipeline
