// Products with frozen weights in tiles have the bits of those with the values that the tiles hold.
#include <gtest/gtest.h>

#include "base/host/threads.h"
#include "ops/trials/tiles.h"

namespace teratron::testing {
namespace {

// The values of a matrix in tiles, in fp32.
Values values_in_tiles(DType dtype, const Shape& shape, const Values& values) {
  const std::vector<float> rows(values.begin(), values.end());
  const Shape across = tiles_of(shape);
  std::vector<std::byte> bytes(static_cast<std::size_t>(across.elements() * size_of(dtype)));
  encode_tiles(dtype, rows, shape[1], bytes);
  Values widened;
  visit_tiles(dtype, [&]<class Tile>(Tile) {
    const auto* const tiles = reinterpret_cast<const Tile*>(bytes.data());
    for (std::int64_t r = 0; r < shape[0]; ++r) {
      for (std::int64_t c = 0; c < shape[1]; ++c) {
        const Tile& tile = tiles[r / kTileRows * across[1] + c / kTileColumns];
        widened.push_back(double{value_in(tile, r % kTileRows, c % kTileColumns)});
      }
    }
  });
  return widened;
}

TEST(FrozenLinear, HasTheBitsOfTheProductWithTheValuesOfItsTiles) {
  Random random(1);
  const int threads = thread_count();
  for (int trial = 0; trial < 25; ++trial) {
    const auto backend = make_cpu_backend(
        {.compute_dtype = random.one_of({DType::kF32, DType::kBF16, DType::kF16}), .bf16_products = random.coin()});
    const DType tiles = random.one_of({DType::kQ8Tile, DType::kQ4Tile});
    const std::int64_t rows = 5 + random.below(70), outputs = 1 + random.below(600);
    const std::int64_t inputs = kTileColumns * random.one_of<std::int64_t>({1, 3, 17, 28, 40});
    const Shape shape{outputs, inputs};
    const Values weight = random.normals(shape);
    const Tensor in_tiles = make_tiles(*backend, tiles, shape, weight),
                 whole = make_tensor(*backend, shape, values_in_tiles(tiles, shape, weight));
    const Tensor x = make_tensor(*backend, {rows, inputs}, random.normals({rows, inputs})),
                 dy = make_tensor(*backend, {rows, outputs}, random.normals({rows, outputs}));
    const auto forward = [&](const Tensor& by) {
      const Tensor y = make_poisoned(*backend, {rows, outputs});
      backend->frozen_linear_forward({{.y = y, .x = x, .weight = by}});
      return download_values(*backend, y);
    };
    const auto backward = [&](const Tensor& by) {
      const Tensor dx = make_poisoned(*backend, {rows, inputs});
      backend->frozen_linear_input_gradient({{.dx = dx, .dy = dy, .weight = by}});
      return download_values(*backend, dx);
    };
    set_thread_count(1 + static_cast<int>(random.below(3)));
    const std::string text = fmt::format("{} {} x {} x {}", name_of(tiles), rows, inputs, outputs);
    EXPECT_EQ(forward(in_tiles), forward(whole)) << text;
    EXPECT_EQ(backward(in_tiles), backward(whole)) << text;
  }
  set_thread_count(threads);
}

}  // namespace
}  // namespace teratron::testing
