// Products with a packed weight have the bits of the call that packs the weight itself, which tests/ops/trials compares
// with the reference.
#include <gtest/gtest.h>

#include <cstring>

#include "base/block_size.h"
#include "base/error.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "base/trials.h"
#include "ops/backend.h"
#include "ops/working_memory.h"
#include "tensor/memory.h"

namespace teratron::testing {
namespace {

std::int64_t one_of(RandomSequence& random, const std::vector<std::int64_t>& values) {
  return values[random.below(values.size())];
}

std::vector<std::byte> bytes_of(const TensorRef& view) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
  std::memcpy(bytes.data(), view.data, bytes.size());
  return bytes;
}

class PackedWeights : public ::testing::Test {
 protected:
  void use(const CpuOptions& options) {
    tensors_.clear();
    options_ = options;
    backend_ = make_cpu_backend(options);
  }
  TensorRef drawn(const Shape& shape) {
    const TensorRef view = tensors_.emplace_back(*backend_, options_.compute_dtype, shape);
    backend_->fill_normal(view, {.seed = ++drawn_}, 0, 1.0);
    return view;
  }
  // The weight's copy, of the planned size.
  TensorRef packed(const TensorRef& weight, WeightProduct use, std::int64_t rows = 1 << 20) {
    const std::int64_t bytes =
        packed_weight_bytes({.rows = rows, .inputs = weight.dim(1), .outputs = weight.dim(0)}, use, options_);
    const TensorRef copy = tensors_.emplace_back(*backend_, DType::kU8, Shape{bytes});
    backend_->pack_weight(copy, weight, use);
    return copy;
  }
  TensorRef zeros(const Shape& shape) {
    const TensorRef view = tensors_.emplace_back(*backend_, options_.compute_dtype, shape);
    backend_->fill_zero(view);
    return view;
  }

  CpuOptions options_;
  std::unique_ptr<Backend> backend_;
  std::vector<Tensor> tensors_;
  std::uint64_t drawn_ = 0;
};

TEST_F(PackedWeights, GiveProductsTheBitsOfTheWeight) {
  RandomSequence random({.seed = 1});
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (int trial = 0; trial < trials(20); ++trial) {
    use({.compute_dtype = kTypes[random.below(3)], .bf16_products = random.below(2) == 0});
    set_thread_count(static_cast<int>(1 + random.below(3)));
    // Depths of one and of several blocks, columns of one and of several packed blocks, and sizes that are no
    // multiples.
    const std::int64_t rows = one_of(random, {5, 33, 130, 300}), inputs = one_of(random, {1, 31, 96, 400, 1030}),
                       outputs = one_of(random, {1, 33, 64, 500, 1500});
    SCOPED_TRACE(fmt::format("{} x {} x {} of {}", rows, inputs, outputs, name_of(options_.compute_dtype)));
    const TensorRef x = drawn({rows, inputs}), dy = drawn({rows, outputs}), weight = drawn({outputs, inputs});
    const TensorRef nothing = zeros(weight.shape);  // a call that reads it gives other results

    const TensorRef y = zeros({rows, outputs}), same_y = zeros({rows, outputs});
    const TensorRef activated = zeros({rows, outputs}), same_activated = zeros({rows, outputs});
    LinearForward forward{.y = y, .x = x, .weight = weight, .bias = drawn({outputs})};
    if (random.below(2) == 0) forward.activation = Activation::kGeluErf;
    if (forward.activation != Activation::kNone) forward.activated = activated;
    backend_->linear_forward(forward);
    forward.packed = packed(weight, WeightProduct::kForward);
    forward.weight = nothing;
    forward.y = same_y;
    if (forward.activated) forward.activated = same_activated;
    backend_->linear_forward(forward);
    EXPECT_EQ(bytes_of(same_y), bytes_of(y));
    if (forward.activated) {
      EXPECT_EQ(bytes_of(same_activated), bytes_of(activated));
    }

    const TensorRef dx = zeros({rows, inputs}), same_dx = zeros({rows, inputs});
    LinearInputGradient backward{.dx = dx, .dy = dy, .weight = weight};
    backend_->linear_input_gradient(backward);
    backward.packed = packed(weight, WeightProduct::kInputGradient);
    backward.weight = nothing;
    backward.dx = same_dx;
    backend_->linear_input_gradient(backward);
    EXPECT_EQ(bytes_of(same_dx), bytes_of(dx));
    if (HasFailure()) return;
  }
  set_thread_count(1);
}

// Neither all columns nor all depths of so large a weight fit a packed block.
TEST_F(PackedWeights, LieInPartsOfColumnsAndOfDepths) {
  use({});
  const TensorRef x = drawn({5, 1600}), weight = drawn({3000, 1600}), y = zeros({5, 3000}), same = zeros({5, 3000});
  backend_->linear_forward({.y = y, .x = x, .weight = weight});
  const TensorRef copy = packed(weight, WeightProduct::kForward);
  backend_->linear_forward({.y = same, .x = x, .weight = zeros(weight.shape), .packed = copy});
  EXPECT_EQ(bytes_of(same), bytes_of(y));
}

TEST_F(PackedWeights, AreReadWithRowsOfTextAlone) {
  use({});
  const std::int64_t inputs = 40, outputs = 70;
  const TensorRef x = drawn({2 * 20, inputs}), weight = drawn({outputs, inputs});
  const TensorRef lengths = tensors_.emplace_back(*backend_, DType::kI32, Shape{2});
  const std::int32_t text[] = {7, 20};
  backend_->upload(lengths, text);
  const TensorRef y = drawn({2 * 20, outputs}), same = drawn({2 * 20, outputs});
  backend_->linear_forward({.y = y, .x = x, .weight = weight, .lengths = lengths});
  backend_->linear_forward(
      {.y = same, .x = x, .weight = weight, .lengths = lengths, .packed = packed(weight, WeightProduct::kForward)});
  EXPECT_EQ(bytes_of(same), bytes_of(y));
}

// Few rows, and those whose products are computed transposed, read the weight in place.
TEST_F(PackedWeights, AreNotPlannedWhereForwardReadsTheWeightInPlace) {
  const auto bytes = [](std::int64_t rows, std::int64_t inputs, WeightProduct use, PackedFor time = PackedFor::kStep) {
    return packed_weight_bytes({.rows = rows, .inputs = inputs, .outputs = 64}, use, {}, time);
  };
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{4}, block_size(256, 5)}) {
    EXPECT_EQ(bytes(rows, 2048, WeightProduct::kForward), 0);
  }
  EXPECT_GE(bytes(4096, 2048, WeightProduct::kForward), 2048 * 64 * 4);
  EXPECT_GE(bytes(256, 2048, WeightProduct::kInputGradient), 2048 * 64 * 4);
  EXPECT_GE(bytes(block_size(256, 5), 2048, WeightProduct::kForward, PackedFor::kAllCalls), 2048 * 64 * 4);
  EXPECT_EQ(bytes(block_size(4, 2), 2048, WeightProduct::kForward, PackedFor::kAllCalls), 0);
}

TEST_F(PackedWeights, OfAnotherSizeAreAnError) {
  use({});
  const TensorRef weight = drawn({40, 24}), other = drawn({240, 24});
  const TensorRef copy = packed(other, WeightProduct::kForward);
  EXPECT_THROW(backend_->pack_weight(copy, weight, WeightProduct::kForward), InternalError);
  EXPECT_THROW(backend_->linear_forward({.y = drawn({9, 40}), .x = drawn({9, 24}), .weight = weight, .packed = copy}),
               InternalError);
  const auto reference = make_reference_backend(DType::kF32);
  EXPECT_THROW(reference->pack_weight(copy, weight, WeightProduct::kForward), InternalError);
}

}  // namespace
}  // namespace teratron::testing
