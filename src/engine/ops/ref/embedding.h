// Token and position embeddings with dropout.
#pragma once

#include <vector>

#include "ops/backend.h"
#include "ops/ref/dropout.h"
#include "ops/ref/elements.h"
#include "tensor/weight_tiles.h"

namespace teratron::reference {

// The row of the position table that token t of sequence b uses.
template <class Arguments>
std::int64_t position_of(const Arguments& args, std::int64_t b, std::int64_t t) {
  if (!args.position_ids) return args.first_position + t;
  return args.position_ids.template as<const std::int32_t>()[b * args.position_ids.dim(1) + t];
}

// Calls use(a function of row and column, rows) for the token table.
template <class C, class Use>
void with_tokens(const TensorRef& table, const Use& use) {
  if (!is_tiles(table.dtype)) {
    const Elements<C> tokens(table);
    return use([&](std::int64_t row, std::int64_t column) { return double{tokens(row, column)}; }, table.dim(0));
  }
  visit_tiles(table.dtype, [&]<class Tile>(Tile) {
    const Elements<Tile> tiles(table);
    use(
        [&](std::int64_t row, std::int64_t column) {
          return double{
              value_in(tiles(row / kTileRows, column / kTileColumns), row % kTileRows, column % kTileColumns)};
        },
        table.dim(0) * kTileRows);
  });
}

template <class C, class Token>
void add_embeddings(const EmbeddingForward& args, const Token& token_value, std::int64_t table_rows) {
  const std::int64_t batch = args.y.dim(0), length = args.y.dim(1), hidden = args.y.dim(2);
  const Elements<C> y(args.y), positions(args.positions);
  const Elements<std::int32_t> ids(args.ids);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t row = ids(b, t) - args.vocab_begin, position = position_of(args, b, t);
      const bool is_here = row >= 0 && row < table_rows;
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double token = is_here ? token_value(row, j) : 0;
        const double sum = token + (args.positions ? double{positions(position, j)} : 0);
        y(b, t, j) = static_cast<C>(activation_dropout(args.dropout, b, t, j, hidden) * sum);
      }
    }
  }
}

template <class C>
void embedding_forward(const EmbeddingForward& args) {
  with_tokens<C>(args.tokens,
                 [&](const auto& token_value, std::int64_t rows) { add_embeddings<C>(args, token_value, rows); });
}

// A table's gradient, summed over all rows that used an entry before it is rounded. An absent table takes nothing.
class TableGradient {
 public:
  explicit TableGradient(const TensorRef& view)
      : view_(view), sums_(view ? static_cast<std::size_t>(view.elements()) : 0, 0.0) {}

  void add(std::int64_t row, std::int64_t column, double gradient) {
    if (!view_ || row < 0 || row >= view_.dim(0)) return;
    sums_[static_cast<std::size_t>(row * view_.dim(1) + column)] += gradient;
  }

  template <class A>
  void store_to_view(bool accumulate) const {
    for (std::size_t e = 0; e < sums_.size(); ++e) store(view_.as<A>()[e], sums_[e], accumulate);
  }

 private:
  TensorRef view_;
  std::vector<double> sums_;
};

template <class C>
void embedding_backward(const EmbeddingBackward& args) {
  const std::int64_t batch = args.dy.dim(0), length = args.dy.dim(1), hidden = args.dy.dim(2);
  const Elements<C> dy(args.dy);
  const Elements<std::int32_t> ids(args.ids);
  TableGradient dtokens(args.dtokens), dpositions(args.dpositions);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t row = ids(b, t) - args.vocab_begin, position = position_of(args, b, t);
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double gradient = activation_dropout(args.dropout, b, t, j, hidden) * dy(b, t, j);
        dtokens.add(row, j, gradient);
        dpositions.add(position, j, gradient);
      }
    }
  }
  dtokens.store_to_view<Accumulator<C>>(args.accumulate_tokens);
  dpositions.store_to_view<Accumulator<C>>(args.accumulate_positions);
}

}  // namespace teratron::reference
