// Tallies of a training step (ops/operations.h) on one rank: of the weights that it starts from, of every layer's
// output and of that output's gradient, taken when the passes make them. Two steps of the same bits have the same
// tallies.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/stage/stage_plan.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

class StepTallies {
 public:
  // In the order of a step.
  enum class Kind {
    kWeights,        // the elements of a parameter that this rank updates
    kCopiedWeights,  // those that other ranks update, with a sharded optimizer
    kOutput,         // of a layer: the residual stream
    kGradient,       // of that output, times the loss scale
  };
  struct Place {
    Kind kind = Kind::kWeights;
    std::int64_t layer = 0;                // of outputs and gradients; -1: the embedding
    const Parameter* parameter = nullptr;  // of weights
  };
  struct Entry {
    Tally tally;
    std::int64_t elements = 0;  // all that were taken in
    bool operator==(const Entry&) const = default;
  };

  // Bytes of the tallies of a stage with these layers and so many parameters.
  static std::int64_t bytes(const StageCells& cells, std::int64_t parameters);

  // `parameters`: those that this rank holds. The plan has memory for tallies and, by the first begin(), is allocated.
  StepTallies(Backend& backend, const StagePlan& plan, const std::vector<Parameter*>& parameters);

  // Begins a step: clears all, and takes the weights.
  void begin();
  void take_output(std::int64_t layer, TensorRef x) { take(output(layer), x); }
  // Gradients of outputs that another stage made are left out.
  void take_gradient(std::int64_t layer, TensorRef dx);

  // The places of read()'s entries, in the order of a step.
  const std::vector<Place>& places() const { return places_; }
  // Waits for the device.
  std::vector<Entry> read();

 private:
  void take(std::size_t place, TensorRef values);
  std::size_t output(std::int64_t layer) const;

  Backend& backend_;
  const StagePlan& plan_;
  std::vector<Place> places_;
  std::vector<std::int64_t> elements_;  // of each place
  std::vector<std::int64_t> layers_;    // of this rank, ascending
  std::size_t outputs_ = 0;             // the first of their places
};

}  // namespace teratron
