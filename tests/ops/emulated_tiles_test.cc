// The emulation of AMX's tiles against examples worked out from Intel's manual, and what a processor would fault on.
#include "ops/cpu/products/emulated_tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace teratron::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kSmallest = std::numeric_limits<float>::min();

// Tile 0 of c[m, n], 1 of a[m, q] and 2 of b[q, n], in words.
TileShapes shapes_of(std::int64_t m, std::int64_t n, std::int64_t q) {
  TileShapes shapes;
  shapes.set(0, m, n * 4);
  shapes.set(1, m, q * 4);
  shapes.set(2, q, n * 4);
  return shapes;
}

// c + a b for one row and one column.
template <class T>
float multiplied(float c, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<T> a_values(a.begin(), a.end()), b_values(b.begin(), b.end());
  const auto words = static_cast<std::int64_t>(a.size()) / 2;
  EmulatedTiles<T> tiles;
  tiles.configure(shapes_of(1, 1, words));
  tiles.template load<0>(&c, 4);
  tiles.template load<1>(a_values.data(), words * 4);
  tiles.template load<2>(b_values.data(), 4);
  tiles.template multiply<0, 1, 2>();
  tiles.template store<0>(&c, 4);
  return c;
}

std::string error_of(const std::function<void(EmulatedTiles<Bf16>&)>& work) {
  EmulatedTiles<Bf16> tiles;
  try {
    work(tiles);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(EmulatedTiles, SumLowAndHighHalvesApart) {
  constexpr float kLarge = 1 << 24;  // and one is not more, in fp32
  EXPECT_EQ(multiplied<Bf16>(0, {kLarge, 1, kLarge, 1}, {1, 1, -1, 1}), 2);
  EXPECT_EQ(multiplied<Bf16>(0, {1, kLarge, 1, kLarge}, {1, 1, 1, -1}), 2);
}

TEST(EmulatedTiles, AddTheSumOfBothToWhatWasThere) {
  constexpr float kLarge = 1 << 24;
  EXPECT_EQ(multiplied<Bf16>(kLarge, {1, 1}, {1, 1}), kLarge + 2);
  EXPECT_EQ(multiplied<Bf16>(kLarge, {1, 1, 1, 1}, {1, 0, 1, 0}), kLarge + 2);
}

TEST(EmulatedTiles, RoundAnAdditionOnceToNearestEven) {
  // The product 1 + 2^-6 + 2^-14 of two bf16 is in full what is added to 2^10, of which the last bit is 2^-13.
  EXPECT_EQ(multiplied<Bf16>(0, {1024, 0, 1 + 0x1p-7F, 0}, {1, 0, 1 + 0x1p-7F, 0}), 1025 + 0x1p-6F);
  EXPECT_EQ(multiplied<Bf16>(0x1p24F, {1, 0}, {3, 0}), 0x1p24F + 4);
  EXPECT_EQ(multiplied<F16>(0, {1 + 0x1p-10F, 0}, {1 + 0x1p-10F, 0}), 1 + 0x1p-9F + 0x1p-20F);
}

TEST(EmulatedTiles, CountSubnormalValuesAsZeroExceptThoseOfF16) {
  EXPECT_EQ(multiplied<Bf16>(1, {kSmallest / 2, 0}, {0x1p126F, 0}), 1);
  EXPECT_EQ(multiplied<Bf16>(kSmallest / 2, {kSmallest, 0}, {1, 0}), kSmallest);
  EXPECT_EQ(multiplied<Bf16>(0, {kSmallest, 0}, {0.5F, 0}), 0) << "a product";
  EXPECT_EQ(multiplied<Bf16>(0, {1.5F * kSmallest, kSmallest}, {1, -1}), 0) << "the sum of both";
  EXPECT_EQ(multiplied<Bf16>(1.5F * kSmallest, {kSmallest, 0}, {-1, 0}), 0) << "the last sum";
  EXPECT_EQ(multiplied<F16>(1, {0x1p-24F, 0}, {1024, 0}), 1 + 0x1p-14F);
}

TEST(EmulatedTiles, PropagateInfinitiesAndNan) {
  EXPECT_EQ(multiplied<Bf16>(1, {kInfinity, 0}, {2, 0}), kInfinity);
  EXPECT_EQ(multiplied<F16>(1, {0, 2}, {0, -kInfinity}), -kInfinity);
  EXPECT_TRUE(std::isnan(multiplied<Bf16>(1, {kInfinity, 0}, {0, 0})));
  EXPECT_TRUE(std::isnan(multiplied<Bf16>(1, {kInfinity, kInfinity}, {1, -1})));
  EXPECT_TRUE(std::isnan(multiplied<F16>(NAN, {1, 1}, {1, 1})));
}

TEST(EmulatedTiles, ReadAndWriteTheirShapesAlone) {
  EmulatedTiles<Bf16> tiles;
  tiles.configure(shapes_of(2, 3, 1));
  std::array<float, 10> from{}, to{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  tiles.load<0>(from.data(), 5 * 4);
  tiles.store<0>(to.data(), 4 * 4);
  EXPECT_EQ(to, (std::array<float, 10>{1, 2, 3, 0, 6, 7, 8}));
  tiles.zero<0>();
  tiles.store<0>(to.data(), 4 * 4);
  EXPECT_EQ(to, (std::array<float, 10>{}));
}

TEST(EmulatedTiles, AreZeroWhenTheyAreConfigured) {
  EmulatedTiles<Bf16> tiles;
  tiles.configure(shapes_of(1, 1, 1));
  float value = 3;
  tiles.load<0>(&value, 4);
  tiles.configure(shapes_of(1, 1, 1));
  tiles.store<0>(&value, 4);
  EXPECT_EQ(value, 0);
}

TEST(EmulatedTiles, RefuseShapesThatDoNotFitEachOther) {
  const auto multiply_with = [](const TileShapes& shapes) {
    return error_of([&](EmulatedTiles<Bf16>& tiles) {
      tiles.configure(shapes);
      tiles.multiply<0, 1, 2>();
    });
  };
  const auto changed = [](std::int64_t tile, std::int64_t rows, std::int64_t row_bytes) {
    TileShapes shapes = shapes_of(4, 5, 6);
    shapes.set(tile, rows, row_bytes);
    return shapes;
  };
  EXPECT_EQ(multiply_with(shapes_of(4, 5, 6)), "");
  EXPECT_NE(multiply_with(changed(0, 3, 5 * 4)), "") << "rows of c";
  EXPECT_NE(multiply_with(changed(0, 4, 4 * 4)), "") << "columns of c";
  EXPECT_NE(multiply_with(changed(1, 4, 5 * 4)), "") << "depth of a";
  EXPECT_NE(multiply_with(changed(1, 4, 6 * 4 + 2)), "") << "a word cut in two";
  EXPECT_NE(multiply_with(changed(2, 7, 5 * 4)), "") << "depth of b";
  EXPECT_NE(multiply_with(changed(2, 0, 0)), "") << "no b";
}

TEST(EmulatedTiles, RefuseWhatNoProcessorConfigures) {
  const auto configure_with = [](const std::function<void(TileShapes&)>& change) {
    TileShapes shapes = shapes_of(16, 16, 16);
    change(shapes);
    return error_of([&](EmulatedTiles<Bf16>& tiles) { tiles.configure(shapes); });
  };
  EXPECT_EQ(configure_with([](TileShapes&) {}), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.set(3, 17, 4); }), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.set(3, 1, 68); }), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.set(3, 1, 0); }), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.set(8, 1, 4); }), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.palette = 2; }), "");
  EXPECT_NE(configure_with([](TileShapes& shapes) { shapes.reserved[13] = 1; }), "");
  EXPECT_NE(error_of([](EmulatedTiles<Bf16>& tiles) { tiles.zero<0>(); }), "") << "nothing is configured";
}

}  // namespace
}  // namespace teratron::testing
