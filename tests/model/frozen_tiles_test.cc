// Adapters beside frozen weights in tiles train as beside the values that the tiles hold: in fp32 bit by bit, in any
// layout as on one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/message_of.h"
#include "checkpoint/tensor_parts.h"
#include "model/train_in_layout.h"
#include "tensor/weight_tiles.h"

namespace teratron::testing {
namespace {

// Rows of a whole parameter before they are rounded, drawn by its name.
std::vector<float> drawn_rows(const Parameter& parameter) {
  const Shape shape = parameter.global_shape();
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(parameter.name)));
  std::normal_distribution<float> normal(0, 0.2F);
  std::vector<float> rows(
      static_cast<std::size_t>((shape[0] - parameter.padding_rows) * (shape.rank() == 1 ? 1 : shape[1])));
  for (float& value : rows) value = normal(random);
  return rows;
}

// The values that tiles hold of rows.
std::vector<float> rounded_rows(std::vector<float> rows) {
  for (std::size_t i = 0; i < rows.size(); i += kTileColumns) {
    const std::span<float, kTileColumns> block(rows.data() + i, kTileColumns);
    const WeightBlock stored = q8_block(block);
    for (std::size_t c = 0; c < block.size(); ++c) block[c] = static_cast<float>(stored.values[c]) * float{stored.step};
  }
  return rows;
}

Study frozen_study(std::uint32_t seed, bool in_tiles) {
  std::mt19937 random(seed);
  Study study{.batch = 4, .tokens = 6, .logits_chunk = 9, .steps = 3, .epsilon = 1e-4};
  study.seed = seed;
  study.config = small_config();
  study.config.set_kind(seed % 2 == 0 ? ModelKind::kLlama : ModelKind::kGpt2);
  study.config.hidden_size = 64;
  study.config.num_attention_heads = 4;
  study.config.num_key_value_heads = seed % 4 == 0 ? 2 : 0;
  study.config.intermediate_size = 128;
  study.config.untied_output = seed % 3 == 0;
  study.config.hidden_dropout = study.config.attention_dropout = 0;
  AdapterConfig& adapters = study.config.adapters;
  adapters = {.rank = 3, .alpha = 6, .dropout = seed % 3 == 1 ? 0.2 : 0};
  for (const AdapterTarget& target : study.config.family().adapter_targets) {
    if (adapters.targets == 0 || random() % 3 > 0) adapters.targets |= target.targets;
  }
  if (in_tiles) study.weight_tiles = DType::kQ8Tile;
  study.take_weights = [](Executor& runner) {
    for (const Parameter* parameter : runner.parameters()) {
      std::vector<float> rows = drawn_rows(*parameter);
      if (parameter->frozen && parameter->takes_tiles && !parameter->widens_tiles) rows = rounded_rows(std::move(rows));
      store_weights(runner.backend(), *parameter, [&](TensorRef part) {
        load_tensor_part(*parameter, part, runner.backend(), std::as_bytes(std::span(rows)), DType::kF32);
      });
    }
  };
  return study;
}

// Losses and norms of the gradients show every update of the adapters but the last.
void expect_trained_as(const Study& in_tiles, const Layout& layout, const Study& whole, double tolerance) {
  const auto backend = [] { return make_cpu_backend(); };
  const Result expected = train(whole, {.micro_batch = whole.batch}, backend);
  const Result actual = train(in_tiles, layout, backend);
  const std::string text = in_tiles.text() + "; " + layout.text();
  expect_near(actual.losses, expected.losses, tolerance, text + ": losses");
  expect_near(actual.norms, expected.norms, tolerance, text + ": gradient norms");
}

TEST(FrozenTiles, TrainWithTheBitsOfTheValuesThatTheyHold) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    expect_trained_as(frozen_study(seed, true), {.micro_batch = 4}, frozen_study(seed, false), 0);
  }
}

TEST(FrozenTiles, TrainInAnyLayoutAsOnOneRank) {
  const Layout layouts[] = {
      {{.tensor = 2}, 2},
      {{.tensor = 2, .data = 2}, 1, /*sequence_parallel=*/true, /*shard_optimizer=*/true},
      {{.pipeline = 2, .data = 2}, 1, false, /*shard_optimizer=*/true, Recompute::kFull},
      {{.tensor = 2, .pipeline = 2}, 2, false, false, Recompute::kSelective},
  };
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    expect_trained_as(frozen_study(seed, true), layouts[seed - 1], frozen_study(seed, false), 2e-5);
  }
}

// Without the fused products that a GPU lacks.
TEST(FrozenTiles, OfNoneTrainTheSameWithoutTheOperationsOfFrozenLayers) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    const Study study = frozen_study(seed, false);
    const Result fused = train(study, {.micro_batch = 4}, [] { return make_cpu_backend(); });
    const Result apart = train(study, {.micro_batch = 4}, [] { return make_cpu_backend({.frozen_linear = false}); });
    expect_near(apart.losses, fused.losses, 1e-5, study.text());
    expect_near(apart.norms, fused.norms, 2e-5, study.text());
  }
}

TEST(FrozenTiles, AreRefusedWhereARankHasHalfABlock) {
  Study study = frozen_study(2, true);
  study.config.hidden_size = 32;
  EXPECT_THROW(train(study, {{.tensor = 2}, 2}, [] { return make_cpu_backend(); }), UserError);
}

TEST(FrozenTiles, ValuesThatTilesDoNotHoldAreRefusedByTheirTensor) {
  const auto backend = make_cpu_backend();
  const Parameter parameter{.name = "layers.0.mlp.up.weight", .shape = {kTileRows, kTileColumns}};
  for (const DType tiles : {DType::kQ8Tile, DType::kQ4Tile}) {
    const Shape shape = tiles_of(parameter.shape);
    const Buffer memory(*backend, shape.elements() * size_of(tiles));
    const auto message = [&](double value) {
      std::vector<float> rows(static_cast<std::size_t>(parameter.shape.elements()), 1);
      rows[77] = static_cast<float>(value);
      return message_of<UserError>([&] {
        load_tensor_part(parameter, memory.view(tiles, shape), *backend, std::as_bytes(std::span(rows)), DType::kF32);
      });
    };
    for (const double fits : {largest_in(tiles), -largest_in(tiles)}) EXPECT_EQ(message(fits), kNoError);
    EXPECT_THAT(message(-1e7), ::testing::AllOf(::testing::HasSubstr("layers.0.mlp.up.weight has the value -1e+07"),
                                                ::testing::HasSubstr(name_of(tiles)), ::testing::HasSubstr("at most")));
    EXPECT_THAT(message(std::numeric_limits<double>::quiet_NaN()), ::testing::HasSubstr("not finite"));
  }
}

}  // namespace
}  // namespace teratron::testing
