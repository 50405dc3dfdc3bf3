// Operations on weights in tiles, which are made from a trial's values when it runs.
#include <cmath>

#include "ops/trials/operations.h"
#include "ops/trials/tiles.h"

namespace teratron::testing {

Tensor make_tiles(Backend& backend, DType dtype, const Shape& shape, const Values& values) {
  const std::vector<float> rows(values.begin(), values.end());
  Tensor tiles(backend, dtype, tiles_of(shape));
  std::vector<std::byte> bytes(static_cast<std::size_t>(tiles.ref().bytes()));
  encode_tiles(dtype, rows, shape[1], bytes);
  backend.upload(tiles, bytes.data());
  return tiles;
}

Trial tile_linear_forward_trial(Random& random) {
  const DType tiles = random.one_of({DType::kQ8Tile, DType::kQ4Tile});
  const std::int64_t O = some_features(random), I = random.one_of<std::int64_t>({32, 64, 96, 352});
  std::int64_t T = some_rows(random);
  const Activation activation = some_activation(random);
  const bool has_gate = activation != Activation::kNone && random.coin();
  Values lengths;
  if (T > 0 && random.coin()) {  // two sequences
    T = std::max<std::int64_t>(2, T / 2 * 2);
    for (int b = 0; b < 2; ++b) lengths.push_back(static_cast<double>(random.below(T / 2 + 1)));
  }
  Trial trial{.sizes = fmt::format("{} T={} I={} O={} activation={} gate={} lengths={}", name_of(tiles), T, I, O,
                                   static_cast<int>(activation), has_gate, lengths.size()),
              .arguments = {},
              .run = {}};
  trial.input("x", {T, I}, random.normals({T, I}));
  if (random.coin()) trial.input("bias", {O}, random.normals({O}));
  if (!lengths.empty()) trial.ids("lengths", {2}, lengths);
  if (has_gate) trial.input("gate", {T, O}, random.normals({T, O}));
  trial.output("y", {T, O}, sum_tolerance(I / kTileColumns, 4, 1));
  if (activation != Activation::kNone) {
    trial.output("activated", {T, O}, sum_tolerance(I / kTileColumns, 16, 1).carrying(8));
  }
  const Values weights = random.normals({O, I}, 0, 1 / std::sqrt(static_cast<double>(I)));
  trial.run = [=](Backend& backend, const Views& views) {
    const Tensor weight = make_tiles(backend, tiles, {O, I}, weights);
    backend.tile_linear_forward({{.y = views["y"],
                                  .x = views["x"],
                                  .weight = weight,
                                  .bias = views["bias"],
                                  .activation = activation,
                                  .activated = views["activated"],
                                  .gate = views["gate"],
                                  .lengths = views["lengths"]}});
    for (const TensorRef& output : {views["y"], views["activated"]}) {
      for (std::int64_t row = 0; output && !lengths.empty() && row < T; ++row) {  // nothing reads padding
        const bool is_text = static_cast<double>(row % (T / 2)) < lengths[static_cast<std::size_t>(row / (T / 2))];
        if (!is_text) backend.fill_zero(output.slice(0, row, row + 1));
      }
    }
  };
  return trial;
}

Trial tiled_embedding_forward_trial(Random& random) {
  const DType tiles = random.one_of({DType::kQ8Tile, DType::kQ4Tile});
  const std::int64_t batch = 1 + random.below(3), tokens = 1 + random.below(9), vocabulary = 1 + random.below(70);
  const std::int64_t hidden = random.one_of<std::int64_t>({32, 96, 160}), begin = random.below(5);
  Trial trial{.sizes = fmt::format("{} B={} S={} V={} hidden={}", name_of(tiles), batch, tokens, vocabulary, hidden),
              .arguments = {},
              .run = {}};
  trial.ids("ids", {batch, tokens}, random.integers({batch, tokens}, 0, vocabulary + 10));
  if (random.coin()) trial.input("positions", {tokens + 2, hidden}, random.normals({tokens + 2, hidden}));
  trial.output("y", {batch, tokens, hidden}, sum_tolerance(1, 4));
  const Dropout dropout = some_dropout(random, tokens);
  const Values table = random.normals({vocabulary, hidden});
  trial.run = [=](Backend& backend, const Views& views) {
    const Tensor entries = make_tiles(backend, tiles, {vocabulary, hidden}, table);
    backend.embedding_forward({.y = views["y"],
                               .ids = views["ids"],
                               .tokens = entries,
                               .positions = views["positions"],
                               .first_position = 1,
                               .vocab_begin = begin,
                               .dropout = dropout});
  };
  return trial;
}

}  // namespace teratron::testing
