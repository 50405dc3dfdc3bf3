// What all forward passes of a Gpt2Runner share.
#pragma once

#include <algorithm>

#include "model/gpt2.h"

namespace teratron {

// The call's tokens of every sequence, [batch, tokens of the slice], from values [batch, tokens of the sequence].
template <class T>
std::vector<T> slice_of(const Step& step, const MicroBatch& micro_batch, std::span<const T> values) {
  std::vector<T> rows;
  rows.reserve(static_cast<std::size_t>(step.batch * step.tokens));
  for (std::int64_t sequence = 0; sequence < micro_batch.batch; ++sequence) {
    const auto begin = values.begin() + sequence * micro_batch.tokens + step.first_position;
    rows.insert(rows.end(), begin, begin + step.tokens);
  }
  return rows;
}

template <class After>
void Gpt2Runner::run_embedding(const Call& call, TensorRef ids, const After& after) {
  const auto& [step, place] = call;
  const TensorRef x = memory_.input(step, place, 0);
  model_.embedding.forward(step, x, step.sequence_parallel ? memory_.workspace(step).branch : x, ids);
  after("the embedding", x);
}

template <class After>
void Gpt2Runner::run_layers(const Call& call, TensorRef out, const After& after) {
  const auto& [step, place] = call;
  const LayerWorkspace w = memory_.workspace(step);
  const int layers = part_.layers(place.chunk);
  for (int layer = 0; layer < layers; ++layer) {
    const TensorRef y = layer + 1 == layers ? out : memory_.input(step, place, layer + 1);
    const std::int64_t index = part_.first_layer(place.chunk) + layer;
    model_.layers[static_cast<std::size_t>(index)].forward(step, y, memory_.saved(step, place, layer, false), w);
    after(fmt::format("layer {}", index), y);
  }
}

}  // namespace teratron
