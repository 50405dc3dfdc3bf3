#include "train/doctor/layer_numerics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace teratron {
namespace {

using Kind = StepTallies::Kind;

// Layers of all of the model's parameters; others count with the embedding.
std::map<const Parameter*, std::int64_t> layers_of_parameters(Executor& executor) {
  std::map<const Parameter*, std::int64_t> layers;
  for (const Parameter* parameter : executor.all_parameters()) layers[parameter] = -1;
  for (TransformerLayer& layer : executor.model().layers) {
    for (const Parameter* parameter : parameters_of(layer)) layers[parameter] = layer.index;
  }
  return layers;
}

// Number of a whole parameter's elements, without the rows that a layout pads a vocabulary with, which are zero.
std::int64_t elements_of(const Parameter& parameter) {
  const Shape shape = parameter.global_shape();
  return shape.elements() - parameter.padding_rows * (shape.elements() / shape[0]);
}

// Whether a rank's tally is part of a sum over all ranks, in which every value counts once.
class Counting {
 public:
  Counting(const Executor& executor, bool has_samples) : executor_(executor), has_samples_(has_samples) {}

  bool counts(const StepTallies::Place& place) const {
    const RankCoordinates at = executor_.mesh().coordinates();
    if (place.kind == Kind::kWeights) {
      const Parameter& parameter = *place.parameter;
      const bool is_own = parameter.sharding.ranks > 1 || at.data.rank == 0;
      return is_own && parameter.counts() && parameter.stage == at.pipeline.rank;
    }
    if (place.kind == Kind::kCopiedWeights) return false;
    return has_samples_ && (executor_.options().sequence_parallel || at.tensor.rank == 0);
  }

 private:
  const Executor& executor_;
  const bool has_samples_;
};

// A number of each kind of values of each layer, the embedding first.
class LayerSums {
 public:
  explicit LayerSums(std::size_t layers) : values_(3 * (layers + 1)) {}

  double& of(std::int64_t layer, std::size_t kind) { return values_[3 * static_cast<std::size_t>(layer + 1) + kind]; }
  void combine(const Mesh& mesh, ReduceOp op) {
    mesh.model->all_reduce_host(values_, op);
    mesh.data->all_reduce_host(values_, op);
  }

 private:
  std::vector<double> values_;
};

// Largest magnitude; infinite in place of NaN, which a maximum over ranks would lose.
double magnitude_of(const Tally& tally) {
  return std::isfinite(tally.largest) ? double{tally.largest} : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<LayerNumerics> layer_numerics(Executor& executor, std::span<const StepTallies::Entry> entries,
                                          bool has_samples, double loss_scale) {
  constexpr std::size_t kOutput = 0, kGradient = 1, kWeights = 2;
  const std::size_t layers = executor.model().layers.size();
  const std::vector<StepTallies::Place>& places = executor.tallies()->places();
  const auto of_parameters = layers_of_parameters(executor);
  const Counting counting(executor, has_samples);
  LayerSums squares(layers), elements(layers), largest(layers);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const StepTallies::Place& place = places[i];
    if (!counting.counts(place)) continue;
    const bool is_of_weights = place.kind == Kind::kWeights;
    const std::int64_t layer = is_of_weights ? of_parameters.at(place.parameter) : place.layer;
    const std::size_t kind = is_of_weights ? kWeights : place.kind == Kind::kOutput ? kOutput : kGradient;
    squares.of(layer, kind) += entries[i].tally.squares;
    if (!is_of_weights) elements.of(layer, kind) += static_cast<double>(entries[i].elements);
    largest.of(layer, kind) = std::max(largest.of(layer, kind), magnitude_of(entries[i].tally));
  }
  squares.combine(executor.mesh(), ReduceOp::kSum);
  elements.combine(executor.mesh(), ReduceOp::kSum);
  largest.combine(executor.mesh(), ReduceOp::kMax);
  for (const auto& [parameter, layer] : of_parameters) {
    elements.of(layer, kWeights) += static_cast<double>(elements_of(*parameter));
  }
  std::vector<LayerNumerics> all;
  for (std::int64_t layer = -1; layer < static_cast<std::int64_t>(layers); ++layer) {
    const auto values = [&](std::size_t kind, double scale) -> LayerNumerics::Values {
      const double count = elements.of(layer, kind);
      return {.rms = count > 0 ? std::sqrt(squares.of(layer, kind) / count) / scale : 0,
              .largest = largest.of(layer, kind) / scale};
    };
    all.push_back({.layer = layer,
                   .output = values(kOutput, 1),
                   .gradient = values(kGradient, loss_scale),
                   .weights = values(kWeights, 1)});
  }
  return all;
}

}  // namespace teratron
