// Collectives of ranks that share GPUs, an emulated one or all that are here: exact for every type and count, in the
// ranks' order.
#include <gtest/gtest.h>

#include "comm/launch.h"
#include "comm/trial.h"

namespace teratron::testing {
namespace {

class GpuRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, GpuRanks, ::testing::Values(2, 3, 4, 7), ::testing::PrintToStringParamName());

TEST_P(GpuRanks, EveryCollectiveIsExactForEveryDTypeAndCount) {
  run_ranks({.host = "here"}, GetParam(), [](Communicator& world) {
    const auto memory = make_cuda_backend({.device = world.rank() % cuda_devices()});
    ASSERT_TRUE(memory->reaches_other_ranks());
    std::vector<int> everyone;
    for (int rank = 0; rank < world.size(); ++rank) everyone.push_back(rank);
    world.attach(memory.get());
    run_all_trials(world, everyone, *memory,
                   {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI64, DType::kI32, DType::kU8},
                   {0, 1, 61, 64, 1031});
    for (std::uint32_t seed = 0; seed < 5; ++seed) run_random_program(world, *memory, seed, 30);
    run_random_messages(world, *memory, 5, 40);
  });
}

}  // namespace
}  // namespace teratron::testing
