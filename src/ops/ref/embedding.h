// Token and position embeddings with dropout.
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/ref/dropout.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

template <class T>
void embedding_forward(const EmbeddingForward& args) {
  const std::int64_t batch = args.y.dim(0), length = args.y.dim(1), hidden = args.y.dim(2);
  const Elements<T> y(args.y), tokens(args.tokens), positions(args.positions ? args.positions : args.tokens);
  const Elements<std::int32_t> ids(args.ids);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t row = ids(b, t) - args.vocab_begin;
      const bool is_here = row >= 0 && row < args.tokens.dim(0);
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double token = is_here ? tokens(row, j) : 0;
        const double sum = args.positions ? token + positions(args.first_position + t, j) : token;
        y(b, t, j) = static_cast<T>(activation_dropout(args.dropout, b, t, j, hidden) * sum);
      }
    }
  }
}

// A table's gradient, summed over all rows that used an entry before it is rounded.
template <class T>
void store_table(const TensorRef& view, const std::vector<double>& sums, bool accumulate) {
  T* const to = view.as<T>();
  for (std::size_t e = 0; e < sums.size(); ++e) store(to[e], sums[e], accumulate);
}

template <class T>
void embedding_backward(const EmbeddingBackward& args) {
  const std::int64_t batch = args.dy.dim(0), length = args.dy.dim(1), hidden = args.dy.dim(2);
  const Elements<T> dy(args.dy);
  const Elements<std::int32_t> ids(args.ids);
  std::vector<double> dtokens(static_cast<std::size_t>(args.dtokens.elements()), 0.0);
  std::vector<double> dpositions(static_cast<std::size_t>(args.dpositions.elements()), 0.0);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t row = ids(b, t) - args.vocab_begin;
      const bool is_here = row >= 0 && row < args.dtokens.dim(0);
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double gradient = activation_dropout(args.dropout, b, t, j, hidden) * dy(b, t, j);
        if (is_here) dtokens[static_cast<std::size_t>(row * hidden + j)] += gradient;
        dpositions[static_cast<std::size_t>((args.first_position + t) * hidden + j)] += gradient;
      }
    }
  }
  store_table<T>(args.dtokens, dtokens, args.accumulate_tokens);
  store_table<T>(args.dpositions, dpositions, args.accumulate_positions);
}

}  // namespace teratron::reference
