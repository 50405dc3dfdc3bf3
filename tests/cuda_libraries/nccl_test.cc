// The installed NCCL has the functions that channels need; only GPUs can show that it moves anything.
#include <gtest/gtest.h>

#include <string>

#include "ops/cuda/exchange/nccl_channel.h"

namespace teratron::testing {
namespace {

using namespace cuda;

TEST(Nccl, IsFoundWithEveryFunctionThatChannelsCall) {
  ::testing::internal::CaptureStderr();
  const bool is_available = nccl_is_available();
  const std::string warning = ::testing::internal::GetCapturedStderr();
  if (!is_available && warning.find("libnccl.so.2: cannot open") != std::string::npos) {
    GTEST_SKIP() << "NCCL's header is here, but the library is not";
  }
  EXPECT_TRUE(is_available) << warning;
}

TEST(Nccl, NamesNoTwoGroupsAlike) {
  if (!nccl_is_available()) GTEST_SKIP() << "NCCL's header is here, but the library is not";
  EXPECT_NE(make_nccl_id(), make_nccl_id());
}

}  // namespace
}  // namespace teratron::testing
