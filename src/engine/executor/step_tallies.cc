#include "executor/step_tallies.h"

#include <algorithm>

#include "base/error.h"

namespace teratron {
namespace {

using Kind = StepTallies::Kind;

constexpr auto kTallyBytes = static_cast<std::int64_t>(sizeof(Tally));

std::vector<std::int64_t> layers_of(const StageCells& cells) {
  std::vector<std::int64_t> layers;
  if (cells.has_embedding()) layers.push_back(-1);
  for (int chunk = 0; chunk < cells.chunks(); ++chunk) {
    for (int index = 0; index < cells.layers(chunk); ++index) layers.push_back(cells.first_layer(chunk) + index);
  }
  return layers;
}

}  // namespace

std::int64_t StepTallies::bytes(const StageCells& cells, std::int64_t parameters) {
  const std::int64_t places = 2 * parameters + 2 * std::ssize(layers_of(cells));
  return places * kTallyBytes;
}

StepTallies::StepTallies(Backend& backend, const StagePlan& plan, const std::vector<Parameter*>& parameters)
    : backend_(backend), plan_(plan), layers_(layers_of(plan.cells())) {
  for (const Kind kind : {Kind::kWeights, Kind::kCopiedWeights}) {
    for (const Parameter* parameter : parameters) {
      if (parameter->widens_tiles) continue;  // whole numbers, which never change
      if (kind == Kind::kWeights || parameter->sharding.ranks > 1) {
        places_.push_back({.kind = kind, .parameter = parameter});
      }
    }
  }
  outputs_ = places_.size();
  for (const std::int64_t layer : layers_) places_.push_back({.kind = Kind::kOutput, .layer = layer});
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    places_.push_back({.kind = Kind::kGradient, .layer = *layer});
  }
  elements_.resize(places_.size());
}

std::size_t StepTallies::output(std::int64_t layer) const {
  const auto found = std::ranges::lower_bound(layers_, layer);
  check(found != layers_.end() && *found == layer, "a layer of this rank");
  return outputs_ + static_cast<std::size_t>(found - layers_.begin());
}

void StepTallies::take(std::size_t place, TensorRef values) {
  const auto begin = static_cast<std::int64_t>(place) * kTallyBytes;
  backend_.tally(plan_.tallies().slice(0, begin, begin + kTallyBytes), values);
  elements_[place] += values.elements();
}

void StepTallies::begin() {
  backend_.fill_zero(plan_.tallies());
  std::ranges::fill(elements_, 0);
  for (std::size_t place = 0; place < outputs_; ++place) {
    const Parameter& parameter = *places_[place].parameter;
    const ElementRange own = own_shard(parameter);
    if (places_[place].kind == Kind::kWeights) {
      take(place, slice_of(parameter.value, own));
    } else {
      take(place, slice_of(parameter.value, {0, own.begin}));
      take(place, slice_of(parameter.value, {own.end, parameter.value.elements()}));
    }
  }
}

void StepTallies::take_gradient(std::int64_t layer, TensorRef dx) {
  if (!std::ranges::binary_search(layers_, layer)) return;
  take(2 * outputs_ + 2 * layers_.size() - 1 - output(layer), dx);
}

std::vector<StepTallies::Entry> StepTallies::read() {
  std::vector<Tally> tallies(places_.size());
  backend_.download(tallies.data(), plan_.tallies().slice(0, 0, std::ssize(tallies) * kTallyBytes));
  std::vector<Entry> entries;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    entries.push_back({.tally = tallies[place], .elements = elements_[place]});
  }
  return entries;
}

}  // namespace teratron
