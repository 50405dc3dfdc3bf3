// Timestamps and ranges of the CUDA back end: timestamps are by the host's clock, and as far apart as the device's work
// between them, whose duration the emulated GPU makes up (cuda_runtime.h).
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "ops/backend.h"

namespace teratron::testing {
namespace {

class GpuTimestamps : public ::testing::Test {
 protected:
  void multiply(int times) {
    for (int i = 0; i < times; ++i) gpu_->linear_forward({.y = y_.ref(), .x = x_.ref(), .weight = weight_.ref()});
  }
  const std::unique_ptr<Backend> gpu_ = make_cuda_backend({.gemm_timing = false});
  const Tensor x_{*gpu_, DType::kF32, {8, 16}}, weight_{*gpu_, DType::kF32, {8, 16}}, y_{*gpu_, DType::kF32, {8, 8}};
};

TEST_F(GpuTimestamps, AreAsFarApartAsTheWorkBetweenThem) {
  const double before = monotonic_seconds();
  const auto start = gpu_->timestamp();
  multiply(1);
  const auto one = gpu_->timestamp();
  multiply(3);
  const auto four = gpu_->timestamp(), same = gpu_->timestamp();
  gpu_->wait();
  const double product = one->seconds() - start->seconds();
  EXPECT_GT(product, 0);
  EXPECT_NEAR(four->seconds() - one->seconds(), 3 * product, 1e-9);  // of doubles of some thousand seconds
  EXPECT_EQ(same->seconds(), four->seconds());
  EXPECT_GE(four->seconds(), before);
  EXPECT_LE(four->seconds(), monotonic_seconds());
}

// And so is the number of launches known: a long cache is read by more blocks, whose results a second kernel puts
// together.
TEST_F(GpuTimestamps, ShowOneLaunchOfAttentionOnAShortCacheAndTwoOnALongOne) {
  const auto microseconds = [&](std::int64_t room, std::int64_t heads) {
    const Tensor row(*gpu_, DType::kF32, {1, 1, heads, 8}), out(*gpu_, DType::kF32, {1, 1, heads, 8}),
        keys(*gpu_, DType::kF32, {1, room, heads, 8}), values(*gpu_, DType::kF32, {1, room, heads, 8}),
        length(*gpu_, DType::kI32, {1});
    for (const Tensor* const tensor : {&row, &keys, &values, &length}) gpu_->fill_zero(tensor->ref());
    const auto start = gpu_->timestamp();
    gpu_->cached_attention({.out = out.ref(),
                            .q = row.ref(),
                            .k = row.ref(),
                            .v = row.ref(),
                            .keys = keys.ref(),
                            .values = values.ref(),
                            .lengths = length.ref(),
                            .scale = 1});
    const auto end = gpu_->timestamp();
    gpu_->wait();
    return 1e6 * (end->seconds() - start->seconds());
  };
  EXPECT_NEAR(microseconds(128, 4), emulated::kLaunchMicroseconds, 1e-3);
  EXPECT_NEAR(microseconds(129, 4), 2 * emulated::kLaunchMicroseconds, 1e-3);
  EXPECT_NEAR(microseconds(129, 256), emulated::kLaunchMicroseconds, 1e-3);  // heads alone are enough blocks
}

TEST_F(GpuTimestamps, StayWhereTheyWereWhenTheDeviceGoesOn) {
  const auto early = gpu_->timestamp();
  gpu_->wait();
  const double told = early->seconds();
  multiply(2);
  const auto late = gpu_->timestamp();
  gpu_->wait();
  EXPECT_EQ(early->seconds(), told);
  EXPECT_GT(late->seconds(), told);
}

TEST_F(GpuTimestamps, HaveNoValueBeforeTheDeviceWasWaitedFor) {
  const auto timestamp = gpu_->timestamp();
  EXPECT_THROW(static_cast<void>(timestamp->seconds()), InternalError);
}

TEST_F(GpuTimestamps, OperationsAreRangesInsideTheirCallers) {
  emulated::ranges = {};
  {
    const BackendRange range(*gpu_, "forward of a layer");
    multiply(2);
    EXPECT_EQ(emulated::ranges.open, std::vector<std::string>{"forward of a layer"});
  }
  EXPECT_THROW(gpu_->linear_forward({}), InternalError);
  EXPECT_EQ(emulated::ranges.closed,
            (std::vector<std::string>{"linear_forward", "linear_forward", "forward of a layer"}));
  EXPECT_TRUE(emulated::ranges.open.empty());
}

// Many more than there are places in pinned memory, changed as soon as the call returns.
TEST_F(GpuTimestamps, UploadsTakeTheValuesThatWereThereWhenTheyWereCalled) {
  const Tensor there(*gpu_, DType::kI32, {40, 1000});
  std::vector<std::int32_t> values(1000);
  for (std::int64_t row = 0; row < 40; ++row) {
    std::ranges::fill(values, static_cast<std::int32_t>(row));
    gpu_->upload(there.ref().slice(0, row, row + 1), values.data());
    std::ranges::fill(values, -1);
  }
  std::vector<std::int32_t> all(40000);
  gpu_->download(all.data(), there);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int32_t>(i / 1000));
}

}  // namespace
}  // namespace teratron::testing
