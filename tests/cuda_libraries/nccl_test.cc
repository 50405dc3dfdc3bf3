// NCCL as it is installed here has what channels need; whether it moves anything only GPUs can tell.
#include <gtest/gtest.h>

#include "ops/cuda/nccl_channel.h"

namespace teratron::cuda {
namespace {

TEST(Nccl, IsFoundWithEveryFunctionThatChannelsCall) { EXPECT_TRUE(nccl_is_available()); }

TEST(Nccl, NamesNoTwoGroupsAlike) { EXPECT_NE(make_nccl_id(), make_nccl_id()); }

}  // namespace
}  // namespace teratron::cuda
