// Matrix products by AMX's tiles, which are emulated: bit by bit against what the manual of TDPBF16PS says of tiles of
// depth that begin at the first one of each run, and against exact products.
#include "ops/cpu/products/tile_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/host/threads.h"
#include "ops/cpu/products/bf16_kernels.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Some of [0, count), in order and apart from each other, or no runs at all.
std::vector<GemmRun> some_runs(Random& random, std::int64_t count) {
  std::vector<GemmRun> runs;
  if (random.coin()) return runs;
  for (std::int64_t begin = random.below(count); begin < count;) {
    const std::int64_t end = begin + 1 + random.below(count - begin);
    runs.push_back({begin, end});
    begin = end + 1 + random.below(40);
  }
  return runs;
}

std::vector<GemmRun> runs_or_all(const std::vector<GemmRun>& runs, std::int64_t count) {
  return runs.empty() ? std::vector<GemmRun>{{0, count}} : runs;
}

bool is_in(const std::vector<GemmRun>& runs, std::int64_t index) {
  return runs.empty() ||
         std::ranges::any_of(runs, [&](const GemmRun& run) { return run.begin <= index && index < run.end; });
}

// Element (i, j) of a matrix, or of one that is stored the other way round. Memory ends with the last element.
template <class T>
struct Matrix {
  std::int64_t stride;
  bool transposed;
  std::vector<T> values;

  static Matrix any(Random& random, std::int64_t rows, std::int64_t columns) {
    const bool transposed = random.coin();
    const std::int64_t lines = transposed ? columns : rows, length = transposed ? rows : columns;
    const std::int64_t stride = length + random.below(9);
    return {stride, transposed, std::vector<T>(static_cast<std::size_t>((lines - 1) * stride + length), T(kNan))};
  }
  T& at(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)];
  }
  GemmOperand operand() const { return {values.data(), stride, transposed}; }
};

// A product whose operands are NaN wherever nothing may be read.
template <class T>
struct Product {
  std::int64_t m, n, k, c_stride;
  bool accumulate, has_c;
  std::vector<GemmRun> rows, depths;
  Matrix<T> a, b;
  std::vector<float> before;

  static Product any(Random& random) {
    std::int64_t m = 1 + random.below(70), n = 1 + random.below(100), k = 1 + random.below(100);
    if (random.below(4) == 0) *random.one_of({&m, &n, &k}) = 150 + random.below(1100);
    Product made{.m = m,
                 .n = n,
                 .k = k,
                 .c_stride = n + random.below(9),
                 .accumulate = random.coin(),
                 .has_c = random.coin(),
                 .rows = some_runs(random, m),
                 .depths = some_runs(random, k),
                 .a = Matrix<T>::any(random, m, k),
                 .b = Matrix<T>::any(random, k, n),
                 .before = {}};
    if (!made.has_c) made.accumulate = false;
    const Values a = random.normals({m, k}), b = random.normals({k, n}), c = random.normals({m, made.c_stride});
    made.before.assign(c.begin(), c.end());
    for (std::int64_t p = 0; p < k; ++p) {
      if (!is_in(made.depths, p)) continue;
      for (std::int64_t i = 0; i < m; ++i) {
        if (is_in(made.rows, i)) made.a.at(i, p) = T(a[static_cast<std::size_t>(i * k + p)]);
      }
      for (std::int64_t j = 0; j < n; ++j) made.b.at(p, j) = T(b[static_cast<std::size_t>(p * n + j)]);
    }
    return made;
  }

  std::string text() const {
    return fmt::format("{}x{}x{} transposed {}{} accumulate {} c {} runs {} and {}", m, n, k, a.transposed,
                       b.transposed, accumulate, has_c, rows.size(), depths.size());
  }

  std::vector<float> computed() const {
    std::vector<float> c = before;
    Gemm product{.m = m,
                 .n = n,
                 .k = k,
                 .dtype = std::is_same_v<T, Bf16> ? DType::kBF16 : DType::kF16,
                 .products = GemmProducts::kEmulatedTiles,
                 .a = a.operand(),
                 .b = b.operand(),
                 .c = has_c ? c.data() : nullptr,
                 .c_stride = c_stride,
                 .accumulate = accumulate,
                 .rows = rows,
                 .depths = depths};
    gemm(product, [&](const GemmBlock& block, const GemmSums& sums) {
      for (std::int64_t i = 0; !has_c && i < block.rows(); ++i) {
        std::copy_n(sums.data + i * sums.stride, block.columns(),
                    c.begin() + (block.row_begin + i) * c_stride + block.column_begin);
      }
    });
    return c;
  }

  // What the instruction makes of element (i, j), of tiles of kTileDepth depths.
  float as_in_the_manual(std::int64_t i, std::int64_t j) {
    float sum = accumulate ? before[static_cast<std::size_t>(i * c_stride + j)] : 0;
    for (const GemmRun& run : runs_or_all(depths, k)) {
      for (std::int64_t begin = run.begin; begin < run.end; begin += kTileDepth) {
        float halves[2] = {};
        for (std::int64_t p = begin; p < std::min(run.end, begin + kTileDepth); ++p) {
          float& half = halves[(p - begin) % 2];
          half = std::fma(float{a.at(i, p)}, float{b.at(p, j)}, half);
        }
        sum += halves[0] + halves[1];
      }
    }
    return sum;
  }

  // Of the exact sum, and what fp32 sums may be off by.
  std::pair<double, double> exact_and_bound(std::int64_t i, std::int64_t j) {
    double sum = accumulate ? before[static_cast<std::size_t>(i * c_stride + j)] : 0, magnitude = std::abs(sum);
    for (const GemmRun& run : runs_or_all(depths, k)) {
      for (std::int64_t p = run.begin; p < run.end; ++p) {
        const double term = double{a.at(i, p)} * double{b.at(p, j)};
        sum += term;
        magnitude += std::abs(term);
      }
    }
    return {sum, static_cast<double>(k + 2) * 0x1p-24 * magnitude};
  }
};

template <class T>
class TileKernels : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(usual_threads_); }
  int usual_threads_ = thread_count();
};
using Halves = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(TileKernels, Halves);

TYPED_TEST(TileKernels, MultiplyAsTheManualSaysWithAnyNumberOfThreadsAndTouchNothingElse) {
  Random random(21);
  for (int trial = 0; trial < 100; ++trial) {
    auto product = Product<TypeParam>::any(random);
    SCOPED_TRACE(::testing::Message() << "seed 21, trial " << trial << ": " << product.text());
    set_thread_count(1);
    const std::vector<float> c = product.computed();
    for (std::int64_t i = 0; i < product.m; ++i) {
      for (std::int64_t j = 0; j < product.c_stride; ++j) {
        const auto e = static_cast<std::size_t>(i * product.c_stride + j);
        if (j >= product.n || !is_in(product.rows, i)) {
          ASSERT_EQ(c[e], product.before[e]) << "element " << i << ", " << j << " is nobody's";
          continue;
        }
        ASSERT_EQ(c[e], product.as_in_the_manual(i, j)) << "element " << i << ", " << j;
        const auto [exact, bound] = product.exact_and_bound(i, j);
        ASSERT_NEAR(c[e], exact, bound) << "element " << i << ", " << j;
      }
    }
    for (const int threads : {2, 5, 16}) {  // that is, blocks of other sizes
      set_thread_count(threads);
      ASSERT_EQ(product.computed(), c) << threads << " threads";
    }
  }
}

TYPED_TEST(TileKernels, InfinitiesAndNanReachWhatTheyMultiplyAlone) {
  Random random(22);
  for (int trial = 0; trial < 100; ++trial) {
    auto product = Product<TypeParam>::any(random);
    product.accumulate = false;
    const GemmRun rows = runs_or_all(product.rows, product.m).front(),
                  depths = runs_or_all(product.depths, product.k).back();
    const std::int64_t row = rows.begin + random.below(rows.count()), column = random.below(product.n);
    const std::int64_t depth = random.coin() ? depths.end - 1 : depths.begin + random.below(depths.count());
    const bool in_a = random.coin();
    const float special = random.one_of({kNan, std::numeric_limits<float>::infinity()});
    (in_a ? product.a.at(row, depth) : product.b.at(depth, column)) = TypeParam(special);
    const std::vector<float> c = product.computed();
    for (std::int64_t i = 0; i < product.m; ++i) {
      for (std::int64_t j = 0; j < product.n && is_in(product.rows, i); ++j) {
        ASSERT_EQ(std::isfinite(c[static_cast<std::size_t>(i * product.c_stride + j)]), in_a ? i != row : j != column)
            << "seed 22, trial " << trial << ": " << product.text() << ", element " << i << ", " << j;
      }
    }
  }
}

TYPED_TEST(TileKernels, VectorsPackAsPlainLoopsDo) {
  if (!has_bf16_products()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  Random random(23);
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t rows = 1 + random.below(100), columns = 1 + random.below(100);
    auto matrix = Matrix<TypeParam>::any(random, rows, columns);
    for (TypeParam& value : matrix.values) value.bits = static_cast<std::uint16_t>(random.below(1 << 16));
    const std::int64_t words = (rows + kTileDepth - 1) / kTileDepth * kTileDepth / 2;
    const GemmDepths depths{.begin = 0, .count = rows, .words = words, .words_before = 0};
    const auto packed = [&](bool in_vectors) {
      std::vector<std::uint32_t> panels(static_cast<std::size_t>((columns + 31) / 32 * 32 * words), 0xdeadbeef);
      const GemmChunk chunk{0, columns, std::span(&depths, 1), true, panels.data()};
      pack_tile_columns(matrix.operand(), chunk, 0, columns, in_vectors);
      if (matrix.transposed) return panels;
      std::vector<std::uint32_t> words_of_rows(static_cast<std::size_t>(columns * (words + 3)), 0xdeadbeef);
      pack_tile_rows(matrix.operand(), columns, rows, words, words_of_rows.data(), words + 3, in_vectors);
      panels.insert(panels.end(), words_of_rows.begin(), words_of_rows.end());
      return panels;
    };
    ASSERT_EQ(packed(true), packed(false)) << rows << "x" << columns << " transposed " << matrix.transposed;
  }
}

// y is computed transposed where there are few rows (linear.cc), with the same bits.
TYPED_TEST(TileKernels, FewRowsHaveTheBitsThatTheyHaveAmongMany) {
  Random random(24);
  const auto backend = make_cpu_backend(
      {.compute_dtype = std::is_same_v<TypeParam, Bf16> ? DType::kBF16 : DType::kF16, .tiles = CpuTiles::kEmulated});
  for (int trial = 0; trial < 4; ++trial) {
    const std::int64_t rows = 140, inputs = 520 + random.below(100), outputs = 1 + random.below(80);
    const Tensor x = make_tensor(*backend, {rows, inputs}, random.normals({rows, inputs})),
                 weight = make_tensor(*backend, {outputs, inputs}, random.normals({outputs, inputs}, 0, 0.05));
    const auto product = [&](std::int64_t begin, std::int64_t end) {
      const Tensor y(*backend, backend->compute_dtype(), {end - begin, outputs});
      backend->linear_forward({.y = y, .x = x.ref().slice(0, begin, end), .weight = weight});
      return download_values(*backend, y);
    };
    const Values all = product(0, rows);
    const std::int64_t count = 5 + random.below(80), begin = random.below(rows - count + 1);
    const Values part = product(begin, begin + count);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin * outputs)) << begin << ", " << count;
  }
}

TEST(CpuSettings, SayHowProductsAreComputed) {
  const std::string vectors = has_bf16_products() ? "by AVX512-BF16" : "widened to fp32";
  const auto settings_of = [](const CpuOptions& options) { return make_cpu_backend(options)->settings(); };
  EXPECT_EQ(settings_of({}), "");
  EXPECT_EQ(settings_of({.compute_dtype = DType::kF32, .tiles = CpuTiles::kEmulated}), "");
  EXPECT_EQ(settings_of({.compute_dtype = DType::kBF16, .tiles = CpuTiles::kNone}), "products of bf16 " + vectors);
  EXPECT_EQ(settings_of({.compute_dtype = DType::kBF16, .bf16_products = false}), "products of bf16 widened to fp32");
  EXPECT_EQ(settings_of({.compute_dtype = DType::kF16, .tiles = CpuTiles::kNone}), "products of f16 widened to fp32");
  EXPECT_EQ(settings_of({.compute_dtype = DType::kBF16, .tiles = CpuTiles::kEmulated}),
            "products of bf16 by emulated AMX, in attention " + vectors);
  EXPECT_EQ(settings_of({.compute_dtype = DType::kF16, .tiles = CpuTiles::kEmulated}),
            "products of f16 by emulated AMX, in attention widened to fp32");
}

}  // namespace
}  // namespace teratron::testing
