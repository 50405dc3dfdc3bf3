// The memory wall and what is told where nothing fits.
#include "plan/search/memory_wall.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "plan/random_request.h"

namespace teratron::testing {
namespace {

using namespace plan;

using ::testing::AllOf;
using ::testing::HasSubstr;

// By planned_memory() of every tensor parallelism and number of stages.
TEST(MemoryWall, IsTheFewestThatFit) {
  RandomSequence random({.seed = 51});
  for (int trial = 0; trial < 25; ++trial) {
    PlanRequest request = random_request(random);
    if (trial % 5 == 0) request.config.batch.global_batch_size = drawn(random, {11, 13, 17, 40});
    std::int64_t alone = 0, fewest = 0;
    const LayoutMemory memory(request.config, request.context());
    const std::int64_t heads = request.config.model.config.num_attention_heads,
                       layers = request.config.model.config.num_layers;
    const auto bytes_on = [&](std::int64_t tensor, std::int64_t stages) {
      const Layout layout{.tensor = tensor,
                          .pipeline = stages,
                          .recompute = Recompute::kFull,
                          .sequence_parallel = tensor > 1 && request.config.model.seq_length % tensor == 0};
      return static_cast<double>(std::ranges::max(memory.planned(layout)));
    };
    request.cluster.device.memory = bytes_on(1, 1) * drawn_between(random, 0.2, 1.1);
    for (std::int64_t devices = heads * layers; devices >= 1; --devices) {
      for (std::int64_t tensor = 1; tensor <= heads; ++tensor) {
        if (heads % tensor != 0 || devices % tensor != 0 || devices / tensor > layers) continue;
        if (bytes_on(tensor, devices / tensor) > request.cluster.device.memory) continue;
        fewest = devices;
        if (devices == tensor) alone = tensor;
      }
    }
    const MemoryWall wall = memory_wall(request);
    ASSERT_EQ(wall.tensor_alone ? wall.tensor_alone->layout.tensor : 0, alone) << "trial " << trial;
    ASSERT_EQ(wall.fewest ? wall.fewest->layout.devices() : 0, fewest) << "trial " << trial;
    const ModelConfig model = request.config.model.model_for(request.vocab_size);
    EXPECT_EQ(wall.parameters, static_cast<double>(model.parameters()));
    EXPECT_EQ(wall.bytes.all(), 16);  // weights, of bf16 with the other half of the masters, gradients, two moments
  }
}

TEST(MemoryWall, OffersChangesThatFit) {
  RandomSequence random({.seed = 52});
  int told = 0;
  for (int trial = 0; trial < 20; ++trial) {
    PlanRequest request = random_request(random);
    request.fixed.recompute = Recompute::kNone;
    request.fixed.tensor = 1;
    const SearchResult roomy = search_layouts(request, 0);
    request.cluster.device.memory = static_cast<double>(std::ranges::max(roomy.best.front().memory)) / 3;
    const SearchResult result = search_layouts(request, 0);
    if (!result.best.empty()) continue;
    ++told;
    ASSERT_TRUE(result.smallest.has_value());
    EXPECT_GT(static_cast<double>(result.smallest_bytes), request.cluster.device.memory);
    for (const Change& change : fitting_changes(request)) {
      EXPECT_LE(static_cast<double>(change.bytes), request.cluster.device.memory) << change.text;
    }
    try {
      throw_too_large(request, result);
    } catch (const TooLargeError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("does not fit"), HasSubstr("more than the")));
    }
  }
  EXPECT_GT(told, 3);
}

}  // namespace
}  // namespace teratron::testing
