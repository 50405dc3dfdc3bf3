// How copies of the CUDA back end are cut into pieces, which the host decides; what they copy,
// tests/ops/copy_views_test.cc sees.
#include "ops/cuda/copy/copy_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/philox.h"

namespace teratron::testing {
namespace {

using namespace cuda;

alignas(16) std::array<std::byte, 64> memory;

TensorRef view_of(DType dtype, const Shape& shape) { return {memory.data(), dtype, shape}; }

TEST(Divisors, GiveTheQuotientOfEveryNumber) {
  RandomSequence random(RandomStream{.seed = 1});
  const auto some = [&] {
    return static_cast<std::int64_t>(random.below(std::uint64_t{0x7fffffff} >> random.below(31))) + 1;
  };
  std::vector<std::int64_t> divisors = {1,     2,     3,          5,          7,          641,
                                        65535, 65536, 0x40000000, 0x40000001, 0x7ffffffe, 0x7fffffff};
  for (int i = 0; i < 2000; ++i) divisors.push_back(some());
  for (const std::int64_t value : divisors) {
    const Divisor divisor(value);
    for (int i = 0; i < 100; ++i) {
      const std::int64_t middle = i < 50 ? some() : some() / value * value;
      for (const std::int64_t number : {middle - 1, middle, std::int64_t{0}, std::int64_t{0x7fffffff}}) {
        if (number < 0) continue;
        ASSERT_EQ(divisor.quotient(static_cast<std::uint32_t>(number)), number / value) << number << " / " << value;
      }
    }
  }
}

// The copies of a slice of tokens: gradients of keys from their sums into a packed projection, and the packed
// projection of several sequences into a cache.
TEST(CopyPlans, HaveOneRowForATokenOrSequenceOfASlice) {
  constexpr std::int64_t kBatch = 3, kTokens = 40, kAll = 160, kHeads = 12, kSize = 64;
  const TensorRef sums = view_of(DType::kF32, {kBatch, kAll, 2, kHeads, kSize}).select(2, 1).slice(1, 80, 80 + kTokens);
  const TensorRef packed = view_of(DType::kBF16, {kBatch, kTokens, 3, kHeads, kSize}).select(2, 2);
  const CopyViews gradients = collapsed({packed, sums});
  EXPECT_EQ(gradients.to.shape, (Shape{kBatch, kTokens, kHeads * kSize}));
  EXPECT_TRUE(takes_chunks(gradients, 8));
  const TensorRef qkv = view_of(DType::kBF16, {kBatch, kTokens, 3 * kHeads * kSize});
  const CopyViews rows =
      collapsed({view_of(DType::kBF16, {kBatch, kAll, 3 * kHeads * kSize}).slice(1, 0, kTokens), qkv});
  EXPECT_EQ(rows.to.shape, (Shape{kBatch, kTokens * 3 * kHeads * kSize}));
  EXPECT_TRUE(takes_chunks(rows, 8));
}

TEST(CopyPlans, AreOneRowForContiguousViewsInAnyOrderOfAxes) {
  TensorRef to = view_of(DType::kBF16, {7, 3, 5}), from = view_of(DType::kF32, {7, 3, 5});
  for (TensorRef* const view : {&to, &from}) {
    view->shape = {5, 7, 3};
    view->strides = {1, 15, 5};
  }
  EXPECT_EQ(collapsed({to, from}).to.shape, (Shape{105}));
  from.strides = {1, 16, 5};
  EXPECT_EQ(collapsed({to, from}).to.shape, (Shape{7, 15}));
}

TEST(CopyPlans, TakeNoVectorsWhereAViewIsNotAligned) {
  const TensorRef to = view_of(DType::kBF16, {4, 64}), from = view_of(DType::kF32, {4, 68}).slice(1, 0, 64);
  EXPECT_TRUE(takes_chunks({to, from}, 8));
  EXPECT_FALSE(takes_chunks({to, view_of(DType::kF32, {4, 66}).slice(1, 0, 64)}, 8));
  EXPECT_FALSE(takes_chunks({to, view_of(DType::kF32, {4, 68}).slice(1, 1, 65)}, 8));
  EXPECT_FALSE(takes_chunks({to.slice(1, 0, 60), from.slice(1, 0, 60)}, 8));
}

// More elements than a launch can count.
TEST(CopyPlans, CoverAllElementsOnceInSmallParts) {
  const CopyViews all =
      collapsed({view_of(DType::kU8, {3, 5, 200}).slice(2, 0, 130), view_of(DType::kU8, {3, 5, 130})});
  for (const std::int64_t most : {1, 2, 100, 129, 130, 400, 10000}) {
    std::set<std::uintptr_t> places;
    std::int64_t count = 0;
    for (const CopyViews& part : parts_of(all, most)) {
      EXPECT_LE(part.to.elements(), most);
      EXPECT_EQ(part.to.shape, part.from.shape);
      count += part.to.elements();
      for (std::int64_t i = 0; i < part.to.elements(); ++i) {
        std::int64_t rest = i, from = 0;
        auto to = reinterpret_cast<std::uintptr_t>(part.to.data);
        for (int axis = part.to.shape.rank() - 1; axis >= 0; --axis) {
          to += static_cast<std::uintptr_t>(rest % part.to.dim(axis) * part.to.stride(axis));
          from += rest % part.to.dim(axis) * part.from.stride(axis);
          rest /= part.to.dim(axis);
        }
        places.insert(to);
        const auto place = static_cast<std::int64_t>(to - reinterpret_cast<std::uintptr_t>(memory.data()));
        EXPECT_EQ(static_cast<std::byte*>(part.from.data) + from, memory.data() + place / 200 * 130 + place % 200);
      }
    }
    EXPECT_EQ(count, 3 * 5 * 130);
    EXPECT_EQ(places.size(), 3U * 5U * 130U);
  }
}

}  // namespace
}  // namespace teratron::testing
