// Views: shapes, slices and selections against plain index arithmetic.
#include "tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace teratron::testing {
namespace {

class Views : public ::testing::Test {
 protected:
  // [3, 4, 5]; element (i, j, k) is 100 i + 10 j + k.
  Views() {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 4; ++j) {
        for (int k = 0; k < 5; ++k) memory_.push_back(static_cast<float>(100 * i + 10 * j + k));
      }
    }
    view_ = TensorRef(memory_.data(), DType::kF32, {3, 4, 5});
  }

  template <class... Index>
  static float at(const TensorRef& view, Index... index) {
    EXPECT_EQ(view.shape.rank(), static_cast<int>(sizeof...(index)));
    std::int64_t offset = 0;
    int axis = 0;
    ((offset += index * view.stride(axis++)), ...);
    return view.as<float>()[offset];
  }

  std::vector<float> memory_;
  TensorRef view_;
};

TEST(Shapes, CountTheirElements) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).elements(), 0);
  EXPECT_EQ((Shape{1 << 20, 1 << 20, 1 << 10}).elements(), std::int64_t{1} << 50);
}

TEST(Shapes, AxesMayCountFromTheEnd) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THROW((void)shape[3], InternalError);
  EXPECT_THROW((void)shape[-4], InternalError);
}

TEST(Shapes, CompareBySizesAndPrintAsAList) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2, 3]");
  EXPECT_EQ(Shape{}.to_string(), "[]");
}

TEST(Shapes, RefuseNegativeSizesAndTooManyAxes) {
  EXPECT_THROW((Shape{2, -1}), InternalError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1}), InternalError);
}

TEST_F(Views, SliceSelectsARangeOfAnyAxis) {
  const TensorRef part = view_.slice(1, 1, 3).slice(-1, 2, 5);
  EXPECT_EQ(part.shape, (Shape{3, 2, 3}));
  EXPECT_FALSE(part.is_contiguous());
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 3; ++k) EXPECT_EQ(at(part, i, j, k), 100 * i + 10 * (j + 1) + k + 2);
    }
  }
  EXPECT_EQ(view_.slice(0, 3, 3).elements(), 0);
  EXPECT_THROW((void)view_.slice(0, 2, 4), InternalError);
  EXPECT_THROW((void)view_.slice(0, 2, 1), InternalError);
}

TEST_F(Views, SelectDropsItsAxis) {
  const TensorRef middle = view_.select(1, 2);
  EXPECT_EQ(middle.shape, (Shape{3, 5}));
  EXPECT_EQ(at(middle, 2, 4), 224);
  EXPECT_EQ(at(view_.select(0, 1), 3, 2), 132);
  EXPECT_EQ(at(view_.select(-1, 1), 2, 3), 231);
  EXPECT_EQ(at(view_.select(0, 1).select(0, 2).select(0, 3)), 123);
  EXPECT_THROW((void)view_.select(0, 3), InternalError);
}

TEST_F(Views, SelectWorksUpToTheLargestRank) {
  const TensorRef deep(memory_.data(), DType::kF32, {3, 1, 4, 1, 5});
  EXPECT_EQ(deep.select(2, 3).shape, (Shape{3, 1, 1, 5}));
  EXPECT_EQ(at(deep.select(2, 3), 2, 0, 0, 4), 234);
}

TEST_F(Views, AnAxisOfOneDoesNotDisturbContiguity) {
  EXPECT_TRUE(view_.is_contiguous());
  EXPECT_TRUE(view_.slice(0, 1, 3).is_contiguous());
  EXPECT_TRUE(view_.slice(0, 1, 2).slice(1, 1, 3).is_contiguous());
  EXPECT_FALSE(view_.slice(1, 1, 3).is_contiguous());
  EXPECT_TRUE(view_.select(0, 1).is_contiguous());
  EXPECT_FALSE(view_.select(1, 1).is_contiguous());
}

TEST_F(Views, ReshapeKeepsTheOrderOfElementsAndNeedsContiguousMemory) {
  const TensorRef flat = view_.reshape({6, 10});
  EXPECT_EQ(at(flat, 3, 7), memory_[37]);
  EXPECT_THROW((void)view_.reshape({7, 10}), InternalError);
  EXPECT_THROW((void)view_.slice(1, 0, 2).reshape({30}), InternalError);
}

TEST_F(Views, FlattenRowsKeepsTheLastAxis) {
  EXPECT_EQ(view_.flatten_rows().shape, (Shape{12, 5}));
  EXPECT_EQ(view_.slice(0, 0, 0).flatten_rows().shape, (Shape{0, 5}));
}

TEST_F(Views, BytesFollowTheDType) {
  EXPECT_EQ(view_.bytes(), 240);
  EXPECT_EQ(TensorRef(nullptr, DType::kBF16, {3, 4}).bytes(), 24);
  EXPECT_THROW((void)view_.as<double>(), InternalError);
}

}  // namespace
}  // namespace teratron::testing
