// Linear layers compute few rows by other kernels than many (ops/cpu/products/linear.cc), with the same bits, so that
// cutting a sequence into slices or a prompt into parts changes nothing. Long tiles, which are chosen by the size of
// the processor's cache, give the same bits, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/host/threads.h"
#include "base/trials.h"
#include "ops/cpu/products/gemm.h"
#include "ops/trials/host.h"

namespace teratron::testing {
namespace {

TEST(FewRows, HaveTheBitsThatTheyHaveAmongMany) {
  Random random(5);
  for (int trial = 0; trial < trials(24); ++trial) {
    const DType dtype = random.one_of({DType::kF32, DType::kBF16, DType::kF16});
    const auto backend = make_cpu_backend({.compute_dtype = dtype});
    const std::int64_t rows = 300, inputs = 500 + random.below(900),
                       outputs = 1 + random.below(random.coin() ? 150 : 2500);
    const Tensor x = make_tensor(*backend, {rows, inputs}, random.normals({rows, inputs})),
                 weight = make_tensor(*backend, {outputs, inputs}, random.normals({outputs, inputs}, 0, 0.05)),
                 bias = make_tensor(*backend, {outputs}, random.normals({outputs}));
    const bool has_bias = random.coin();
    const Activation activation =
        random.one_of({Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu});
    const auto product = [&](std::int64_t begin, std::int64_t end) {
      const Tensor y(*backend, dtype, {end - begin, outputs}), activated(*backend, dtype, {end - begin, outputs});
      LinearForward forward{.y = y, .x = x.ref().slice(0, begin, end), .weight = weight, .activation = activation};
      if (has_bias) forward.bias = bias;
      if (activation != Activation::kNone) forward.activated = activated;
      backend->linear_forward(forward);
      Values values = download_values(*backend, y);
      if (activation != Activation::kNone) {
        const Values more = download_values(*backend, activated);
        values.insert(values.end(), more.begin(), more.end());
      }
      return values;
    };
    const Values all = product(0, rows);
    const std::int64_t count = 5 + random.below(252), begin = random.below(rows - count + 1);
    const Values part = product(begin, begin + count);
    for (std::size_t half = 0; half * static_cast<std::size_t>(count * outputs) < part.size(); ++half) {
      const auto h = static_cast<std::int64_t>(half);
      const auto first = all.begin() + (h * rows + begin) * outputs, own = part.begin() + h * count * outputs;
      ASSERT_TRUE(std::equal(own, own + count * outputs, first))
          << "rows " << begin << " .. " << begin + count << ", I=" << inputs << " O=" << outputs << ", "
          << name_of(dtype) << ", activation " << static_cast<int>(activation);
    }
  }
}

// c after the product, as bits.
std::vector<std::uint32_t> bits_with(const GemmKernels& kernels, Gemm product, std::vector<float> c) {
  product.c = c.data();
  const GemmPlan plan(product, kernels);
  for (std::int64_t index = 0; index < plan.packed_blocks(); ++index) {
    const PackedBlock packed = plan.packed_block(index);
    plan.pack(packed);
    for (std::int64_t block = 0; block < plan.blocks(packed); ++block) plan.multiply(packed, plan.block(packed, block));
  }
  std::vector<std::uint32_t> bits;
  for (const float value : c) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

template <class T>
std::vector<T> normal_values(Random& random, std::int64_t count) {
  std::vector<T> values;
  for (const double value : random.normals({count})) values.push_back(static_cast<T>(value));
  return values;
}

// A random product, by plain and by long tiles: of whole tiles and of parts of them, of one block and of several.
template <class T>
void expect_same_bits(Random& random, DType dtype) {
  const auto m = random.one_of<std::int64_t>({1, 11, 12, 13, 95, 250}),
             n = random.one_of<std::int64_t>({1, 16, 33, 500, 900}),
             k = random.one_of<std::int64_t>({1, 31, 384, 500, 800});
  const bool a_transposed = random.coin(), b_transposed = random.coin();
  const std::vector<T> a = normal_values<T>(random, m * k), b = normal_values<T>(random, k * n);
  const std::vector<float> c = normal_values<float>(random, m * n);
  const Gemm product{.m = m,
                     .n = n,
                     .k = k,
                     .dtype = dtype,
                     .a = {a.data(), a_transposed ? m : k, a_transposed},
                     .b = {b.data(), b_transposed ? k : n, b_transposed},
                     .c = nullptr,
                     .c_stride = n,
                     .accumulate = random.coin()};
  set_thread_count(static_cast<int>(1 + random.below(3)));
  EXPECT_TRUE(bits_with(float_gemm_kernels(dtype, /*long_tiles=*/false), product, c) ==
              bits_with(float_gemm_kernels(dtype, /*long_tiles=*/true), product, c))
      << m << " x " << n << " x " << k << " of " << name_of(dtype) << ", transposed: " << a_transposed << b_transposed;
}

TEST(LongTiles, GiveTheBitsOfPlainTiles) {
  if (float_gemm_kernels(DType::kF32, true).tile_rows == float_gemm_kernels(DType::kF32, false).tile_rows) {
    GTEST_SKIP() << "no long tiles with these instructions";
  }
  Random random(1);
  for (int trial = 0; trial < trials(12); ++trial) {
    expect_same_bits<float>(random, DType::kF32);
    expect_same_bits<Bf16>(random, DType::kBF16);
  }
  set_thread_count(1);
}

}  // namespace
}  // namespace teratron::testing
