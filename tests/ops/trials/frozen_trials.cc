// Linear layers with frozen weights, of the compute type or in tiles, to which products of low rank are added.
#include <cmath>

#include "ops/trials/operations.h"
#include "ops/trials/tiles.h"

namespace teratron::testing {
namespace {

// Whole numbers of a power of two, so that every storage type holds a tile's values as they are.
class FrozenWeight {
 public:
  FrozenWeight(Random& random, std::int64_t outputs, std::int64_t inputs, std::int64_t summed)
      : tiles_(inputs % kTileColumns == 0
                   ? random.one_of<std::optional<DType>>({std::nullopt, DType::kQ8Tile, DType::kQ4Tile})
                   : std::nullopt),
        shape_{outputs, inputs} {
    if (!tiles_) {
      values_ = random.normals(shape_, 0, 1 / std::sqrt(static_cast<double>(summed)));
      return;
    }
    const std::int64_t most = tiles_ == DType::kQ8Tile ? 127 : 7;
    const double step =
        std::exp2(-std::ceil(std::log2(static_cast<double>(most) * std::sqrt(static_cast<double>(summed)) / 2)));
    values_ = random.integers(shape_, -most, most + 1);
    // The first of each block fixes its step: as far from 0 as whole numbers reach.
    for (std::size_t i = 0; i < values_.size(); i += kTileColumns) values_[i] = tiles_ == DType::kQ8Tile ? -127 : -8;
    for (double& value : values_) value *= step;
  }

  std::string text() const { return tiles_ ? std::string(name_of(*tiles_)) : "whole"; }
  void add_to(Trial& trial) const {
    if (!tiles_) trial.input("weight", shape_, values_);
  }
  // The weight's view; tiles live in `made`.
  TensorRef view(Backend& backend, const Views& views, std::optional<Tensor>& made) const {
    if (!tiles_) return views["weight"];
    made.emplace(make_tiles(backend, *tiles_, shape_, values_));
    return *made;
  }

 private:
  std::optional<DType> tiles_;
  Shape shape_;
  Values values_;
};

struct FrozenSizes {
  std::int64_t rows, inputs, outputs;
  Values lengths = {};  // of two sequences; empty: no padding

  explicit FrozenSizes(Random& random)
      : rows(some_rows(random)),
        inputs(random.coin() ? some_features(random) : random.one_of<std::int64_t>({32, 96, 352, 544})),
        outputs(random.below(4) == 0 ? 521 : some_features(random)) {
    if (rows < 2 || random.coin()) return;
    rows = rows / 2 * 2;
    for (int b = 0; b < 2; ++b) lengths.push_back(static_cast<double>(random.below(rows / 2 + 1)));
  }
  bool is_padding(std::int64_t row) const {
    return !lengths.empty() &&
           static_cast<double>(row % (rows / 2)) >= lengths[static_cast<std::size_t>(row / (rows / 2))];
  }
  // Nothing reads padding.
  void clear_padding(Backend& backend, const TensorRef& view) const {
    for (std::int64_t row = 0; view && row < rows; ++row) {
      if (is_padding(row)) backend.fill_zero(view.slice(0, row, row + 1));
    }
  }
  // Values of rows, of which padding is 0.
  Values values_of_rows(Random& random, std::int64_t columns) const {
    Values values = random.normals({rows, columns});
    for (std::int64_t row = 0; row < rows; ++row) {
      if (is_padding(row)) std::fill_n(values.begin() + row * columns, columns, 0.0);
    }
    return values;
  }
};

struct AddedRanks {
  struct One {
    std::int64_t rank, first_output;
  };
  std::vector<One> all;
  std::int64_t terms = 0;

  // `columns`: that a product may be of some of; 0: it is of all.
  AddedRanks(Random& random, const FrozenSizes& sizes, std::int64_t columns, Trial& trial) {
    const std::int64_t count = random.below(4);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t rank = random.one_of<std::int64_t>({1, 2, 5, 16, 33});
      const std::int64_t own = columns == 0 ? sizes.inputs : 1 + random.below(columns);
      all.push_back({rank, columns == 0 ? 0 : random.below(columns - own + 1)});
      terms += rank;
      const Shape weight = columns == 0 ? Shape{rank, own} : Shape{own, rank};
      trial.input(fmt::format("rows {}", i), {sizes.rows, rank}, sizes.values_of_rows(random, rank));
      trial.input(fmt::format("low {}", i), weight,
                  random.normals(weight, 0, 1 / std::sqrt(static_cast<double>(rank))));
    }
  }
  LowRankProducts products(const Views& views) const {
    LowRankProducts products;
    for (std::size_t i = 0; i < all.size(); ++i) {
      products[i] = {views[fmt::format("rows {}", i)], views[fmt::format("low {}", i)], all[i].first_output};
    }
    return products;
  }
};

}  // namespace

Trial frozen_linear_forward_trial(Random& random) {
  const FrozenSizes sizes(random);
  const std::int64_t T = sizes.rows, I = sizes.inputs, O = sizes.outputs;
  const FrozenWeight weight(random, O, I, I);
  const Activation activation = some_activation(random);
  const bool has_gate = activation != Activation::kNone && random.coin(), rows_alone = random.below(4) == 0;
  Trial trial{.sizes = fmt::format("{} T={} I={} O={} activation={} gate={} alone={} lengths={}", weight.text(), T, I,
                                   O, static_cast<int>(activation), has_gate, rows_alone, sizes.lengths.size()),
              .arguments = {},
              .run = {}};
  trial.input("x", {T, I}, random.normals({T, I}));
  weight.add_to(trial);
  if (random.coin()) trial.input("bias", {O}, random.normals({O}));
  if (!sizes.lengths.empty()) trial.ids("lengths", {2}, sizes.lengths);
  if (has_gate) trial.input("gate", {T, O}, random.normals({T, O}));
  const AddedRanks added(random, sizes, O, trial);
  trial.output("y", {T, O}, sum_tolerance(I + added.terms, 4, 1));
  // As those of linear_forward, whose sums are half as large.
  if (activation != Activation::kNone)
    trial.output("activated", {T, O}, sum_tolerance(I + added.terms, 32, 1).carrying(16));
  trial.run = [=](Backend& backend, const Views& views) {
    std::optional<Tensor> tiles;
    const LinearForward linear{.y = views["y"],
                               .x = views["x"],
                               .weight = weight.view(backend, views, tiles),
                               .bias = views["bias"],
                               .activation = activation,
                               .activated = views["activated"],
                               .gate = views["gate"],
                               .rows_alone = rows_alone,
                               .lengths = views["lengths"]};
    backend.frozen_linear_forward({linear, added.products(views)});
    for (const TensorRef& output : {views["y"], views["activated"]}) sizes.clear_padding(backend, output);
  };
  return trial;
}

Trial frozen_linear_input_gradient_trial(Random& random) {
  const FrozenSizes sizes(random);
  const std::int64_t T = sizes.rows, I = sizes.inputs, O = sizes.outputs;
  const FrozenWeight weight(random, O, I, O);
  const Activation activation = some_activation(random);
  const bool has_gate = activation != Activation::kNone && random.coin();
  Trial trial{.sizes = fmt::format("{} T={} I={} O={} activation={} gate={} lengths={}", weight.text(), T, I, O,
                                   static_cast<int>(activation), has_gate, sizes.lengths.size()),
              .arguments = {},
              .run = {}};
  trial.input("dy", {T, O}, sizes.values_of_rows(random, O));
  weight.add_to(trial);
  if (!sizes.lengths.empty()) trial.ids("lengths", {2}, sizes.lengths);
  const AddedRanks added(random, sizes, 0, trial);
  const Tolerance gradient = sum_tolerance(O + added.terms, 32, 1);
  trial.output("dx", {T, I}, gradient);
  if (activation != Activation::kNone) {
    trial.input("pre_activation", {T, I}, random.normals({T, I}));
    trial.output("activated", {T, I}, sum_tolerance(1, 16, 1));
  }
  if (has_gate) {
    trial.input("gate", {T, I}, random.normals({T, I}));
    trial.output("dgate", {T, I}, gradient);
  }
  trial.run = [=](Backend& backend, const Views& views) {
    std::optional<Tensor> tiles;
    const LinearInputGradient linear{.dx = views["dx"],
                                     .dy = views["dy"],
                                     .weight = weight.view(backend, views, tiles),
                                     .activation = activation,
                                     .pre_activation = views["pre_activation"],
                                     .activated = views["activated"],
                                     .gate = views["gate"],
                                     .dgate = views["dgate"],
                                     .lengths = views["lengths"]};
    backend.frozen_linear_input_gradient({linear, added.products(views)});
    for (const TensorRef& output : {views["dx"], views["activated"], views["dgate"]}) {
      sizes.clear_padding(backend, output);
    }
  };
  return trial;
}

}  // namespace teratron::testing
