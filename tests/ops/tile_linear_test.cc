// Products with weights in tiles against fp64 products of the weights that the tiles hold, and their bits.
#include <gtest/gtest.h>

#include <cmath>

#include "base/host/threads.h"
#include "ops/trials/tiles.h"

namespace teratron::testing {
namespace {

struct Product {
  std::int64_t rows, inputs, outputs;
  DType tiles;
  Values x, weight;

  static Product any(Random& random) {
    Product product{.rows = 1 + random.below(40),
                    .inputs = kTileColumns * (1 + random.below(12)),
                    .outputs = 1 + random.below(200),
                    .tiles = random.one_of({DType::kQ8Tile, DType::kQ4Tile}),
                    .x = {},
                    .weight = {}};
    product.x = random.normals({product.rows, product.inputs});
    product.weight = random.normals({product.outputs, product.inputs});
    return product;
  }
  Values rows_of(Backend& backend, std::int64_t begin, std::int64_t end) const {
    const Tensor all = make_tensor(backend, {rows, inputs}, x),
                 tiles_there = make_tiles(backend, tiles, {outputs, inputs}, weight);
    const Tensor y(backend, backend.compute_dtype(), {end - begin, outputs});
    backend.tile_linear_forward({{.y = y, .x = all.ref().slice(0, begin, end), .weight = tiles_there}});
    return download_values(backend, y);
  }
  Values all(Backend& backend) const { return rows_of(backend, 0, rows); }
};

// The root mean square of the error, relative to that of the product in fp64 of the values before any rounding.
double error_of(const Product& product, const Values& y) {
  double errors = 0, squares = 0;
  for (std::int64_t t = 0; t < product.rows; ++t) {
    for (std::int64_t o = 0; o < product.outputs; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < product.inputs; ++i) {
        sum += product.x[static_cast<std::size_t>(t * product.inputs + i)] *
               product.weight[static_cast<std::size_t>(o * product.inputs + i)];
      }
      const double error = y[static_cast<std::size_t>(t * product.outputs + o)] - sum;
      errors += error * error;
      squares += sum * sum;
    }
  }
  return std::sqrt(errors / squares);
}

TEST(TileLinear, IsNearTheProductOfTheValues) {
  Random random(1);
  const auto backend = make_cpu_backend();
  for (int trial = 0; trial < 40; ++trial) {
    const Product product = Product::any(random);
    // The largest of a block's 32 normal values is near 2.1. Rounding to steps of 2.1 / 127 errs by 0.5 %, once for x
    // and once for the weight; to steps of 2.1 / 8, of 4 bits, by 8 %, and in small products by more.
    EXPECT_LT(error_of(product, product.all(*backend)), product.tiles == DType::kQ8Tile ? 0.011 : 0.14);
  }
}

TEST(TileLinear, ARowHasTheBitsOfACallOfItsOwnWithAnyKernelAndThreads) {
  Random random(2);
  const int threads = thread_count();
  for (int trial = 0; trial < 40; ++trial) {
    const Product product = Product::any(random);
    const auto backend = make_cpu_backend(), plain = make_cpu_backend({.vnni_products = false});
    set_thread_count(1 + static_cast<int>(random.below(3)));
    const Values all = product.all(*backend);
    EXPECT_EQ(product.all(*plain), all);
    set_thread_count(1 + static_cast<int>(random.below(3)));
    EXPECT_EQ(product.all(*backend), all);
    const std::int64_t row = random.below(product.rows);
    const Values own(all.begin() + row * product.outputs, all.begin() + (row + 1) * product.outputs);
    EXPECT_EQ(product.rows_of(*backend, row, row + 1), own) << "row " << row << " of " << product.rows;
  }
  set_thread_count(threads);
}

TEST(TileLinear, AnInputThatIsNotFiniteShows) {
  Random random(3);
  for (const bool vnni : {true, false}) {
    const auto backend = make_cpu_backend({.vnni_products = vnni});
    for (const double bad : {std::nan(""), double{HUGE_VAL}, -double{HUGE_VAL}}) {
      Product product = Product::any(random);
      const std::int64_t row = random.below(product.rows);
      product.x[static_cast<std::size_t>(row * product.inputs + random.below(product.inputs))] = bad;
      const Values y = product.all(*backend);
      for (std::int64_t t = 0; t < product.rows; ++t) {
        for (std::int64_t o = 0; o < product.outputs; ++o) {
          EXPECT_EQ(std::isfinite(y[static_cast<std::size_t>(t * product.outputs + o)]), t != row);
        }
      }
    }
  }
}

TEST(TileLinear, ZerosAndTheSmallestNumbersGiveZeros) {
  Random random(4);
  const auto backend = make_cpu_backend();
  Product product = Product::any(random);
  std::fill(product.x.begin(), product.x.end(), 0x1p-140);
  for (const double value : product.all(*backend)) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace teratron::testing
