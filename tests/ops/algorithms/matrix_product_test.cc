// Properties that distinguish the algorithms of two products, and products that may be computed again and again.
#include "ops/algorithms/matrix_product.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace teratron::testing {
namespace {

// [6, 4] = [6, 8] [8, 4], with places of their own, 4 KiB apart.
class MatrixProducts : public ::testing::Test {
 protected:
  void* place(std::size_t number) { return memory_.data() + number * kApart; }
  TensorRef view(std::size_t number, const Shape& shape, DType dtype = DType::kBF16) {
    return {place(number), dtype, shape};
  }
  MatrixProduct product() { return {.c = view(0, {6, 4}), .a = view(1, {6, 8}), .b = view(2, {8, 4})}; }

  static constexpr std::size_t kApart = 4096;
  alignas(4096) std::array<std::byte, 5 * kApart> memory_{};
};

TEST_F(MatrixProducts, CountTheirMultiplyAdds) {
  EXPECT_EQ(product().multiply_adds(), 6 * 4 * 8);
  const MatrixProduct transposed{
      .c = view(0, {6, 4}), .a = view(1, {8, 6}), .b = view(2, {4, 8}), .transpose_a = true, .transpose_b = true};
  EXPECT_EQ(transposed.multiply_adds(), 6 * 4 * 8);
  EXPECT_EQ(key_of(transposed, false).k, 8);
}

TEST_F(MatrixProducts, CanBeRepeatedUnlessWhatTheyWriteIsRead) {
  MatrixProduct sound = product();
  sound.bias = view(3, {4});
  sound.gelu_input = view(4, {6, 4});
  EXPECT_TRUE(sound.can_be_repeated());
  MatrixProduct other = sound;
  other.accumulate = true;
  EXPECT_FALSE(other.can_be_repeated());
  for (TensorRef MatrixProduct::*input :
       {&MatrixProduct::a, &MatrixProduct::b, &MatrixProduct::bias, &MatrixProduct::gelu_input}) {
    other = sound;
    (other.*input).data = sound.c.data;
    EXPECT_FALSE(other.can_be_repeated());
    // Its last byte is c's first, its first is c's last, and one beyond either.
    const std::int64_t input_bytes = (sound.*input).bytes(), c_bytes = sound.c.bytes();
    std::byte* const c = memory_.data() + kApart;
    other.c.data = c;
    if (input == &MatrixProduct::a)
      other.b.data = place(4), other.gelu_input.data = place(2);
    else
      other.a.data = place(input == &MatrixProduct::b ? 2 : 0), other.b.data = place(2);
    const auto at = [&](std::int64_t offset) {
      (other.*input).data = c + offset;
      return other.can_be_repeated();
    };
    EXPECT_FALSE(at(1 - input_bytes));
    EXPECT_FALSE(at(c_bytes - 1));
    EXPECT_TRUE(at(-input_bytes));
    EXPECT_TRUE(at(c_bytes));
  }
}

TEST_F(MatrixProducts, DifferInTheirKeysByAllThatCounts) {
  std::vector<MatrixProductKey> keys = {key_of(product(), false)};
  const auto add = [&](const auto& change) {
    MatrixProductKey key = keys.front();
    change(key);
    keys.push_back(key);
  };
  add([](auto& key) { key.c_dtype = DType::kF32; });
  add([](auto& key) { key.dtype = DType::kF16; });
  add([](auto& key) { key.m = 7; });
  add([](auto& key) { key.n = 7; });
  add([](auto& key) { key.k = 7; });
  add([](auto& key) { key.transpose_a = true; });
  add([](auto& key) { key.transpose_b = true; });
  add([](auto& key) { key.accumulate = true; });
  add([](auto& key) { key.bias_alignment = 2; });
  add([](auto& key) { key.before_gelu_alignment = 2; });
  add([](auto& key) { key.gelu_alignment = 2; });
  add([](auto& key) { key.bias_gradient_alignment = 2; });
  add([](auto& key) { key.tf32 = true; });
  add([](auto& key) { key.a_alignment = 2; });
  add([](auto& key) { key.b_alignment = 2; });
  add([](auto& key) { key.c_alignment = 2; });
  std::set<std::string> texts;
  for (const MatrixProductKey& key : keys) texts.insert(text_of(key));
  EXPECT_EQ(texts.size(), keys.size());
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size());
  for (const std::string& text : texts) EXPECT_EQ(text.find_first_of("\t\n"), std::string::npos) << text;
}

TEST_F(MatrixProducts, HaveKeysOfWhatTheyAre) {
  MatrixProduct all{.c = view(0, {6, 4}, DType::kF32),
                    .a = view(1, {8, 6}, DType::kF32),
                    .b = view(2, {4, 8}, DType::kF32),
                    .transpose_a = true,
                    .transpose_b = true,
                    .accumulate = true};
  all.bias = view(3, {4}, DType::kF32);
  all.gelu_input = view(4, {6, 4}, DType::kF32);
  all.before_gelu = view(4, {6, 4}, DType::kF32);
  all.bias_gradient = view(3, {6}, DType::kF32);
  all.a.data = static_cast<std::byte*>(all.a.data) + 4;
  all.b.data = static_cast<std::byte*>(all.b.data) + 48;
  const MatrixProductKey expected{.c_dtype = DType::kF32,
                                  .dtype = DType::kF32,
                                  .m = 6,
                                  .n = 4,
                                  .k = 8,
                                  .transpose_a = true,
                                  .transpose_b = true,
                                  .accumulate = true,
                                  .tf32 = true,
                                  .a_alignment = 4,
                                  .b_alignment = 16,
                                  .c_alignment = 16,
                                  .bias_alignment = 16,
                                  .before_gelu_alignment = 16,
                                  .gelu_alignment = 16,
                                  .bias_gradient_alignment = 16};
  EXPECT_EQ(key_of(all, true), expected);
  EXPECT_FALSE(key_of(product(), true).tf32) << "of 16-bit values: the same product with and without it";
  EXPECT_EQ(key_of(product(), false).bias_alignment + key_of(product(), false).gelu_alignment, 0U);
}

}  // namespace
}  // namespace teratron::testing
