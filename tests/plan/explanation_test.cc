// Groups and shapes against those that the Megatron-LM paper and its explainer print.
#include "plan/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cluster/cluster_file.h"
#include "cluster/collective_time.h"
#include "plan/costs/layer_costs.h"

namespace teratron::testing {
namespace {

using namespace plan;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Figure 8 and Appendix B.1: of 512 GPUs with 8-way model parallelism, GPUs 1 to 8 are a model-parallel group, and 1,
// 9, .., 505 a data-parallel one; there are 64 and 8 of them.
TEST(Explanation, GroupsAreThoseOfThePapersFigure) {
  const MeshShape shape{.tensor = 8, .pipeline = 1, .data = 64};
  const std::vector<std::vector<int>> tensor = groups_of(shape, &RankCoordinates::tensor),
                                      data = groups_of(shape, &RankCoordinates::data);
  ASSERT_EQ(tensor.size(), 64U);
  EXPECT_THAT(tensor[0], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(tensor[63].back(), 511);
  ASSERT_EQ(data.size(), 8U);
  ASSERT_EQ(data[0].size(), 64U);
  for (int copy = 0; copy < 64; ++copy) EXPECT_EQ(data[0][static_cast<std::size_t>(copy)], 8 * copy);
  EXPECT_EQ(groups_of(shape, &RankCoordinates::pipeline).size(), 512U);
}

TEST(Explanation, EveryRankIsInOneGroupOfEachKind) {
  const MeshShape shape{.tensor = 3, .pipeline = 4, .data = 5};
  const auto sizes = {
      std::pair{&RankCoordinates::tensor, 3U}, {&RankCoordinates::pipeline, 4U}, {&RankCoordinates::data, 5U}};
  for (const auto& [axis, size] : sizes) {
    std::vector<int> all;
    for (const std::vector<int>& group : groups_of(shape, axis)) {
      EXPECT_EQ(group.size(), size);
      all.insert(all.end(), group.begin(), group.end());
    }
    std::ranges::sort(all);
    std::vector<int> ranks(60);
    std::iota(ranks.begin(), ranks.end(), 0);
    EXPECT_EQ(all, ranks);
  }
}

TrainConfig largest_of_megatron() {
  TrainConfig config;
  config.model.preset = "8.3B";
  FieldList fields = fields_of(config);
  fields.find("model")->when_set();
  config.layout.tensor_parallel = 8;
  return config;
}

TEST(Explanation, ShapesAreThoseOf8Point3BOn8Gpus) {
  const std::string text = explanation(largest_of_megatron(), find_cluster("dgx-2h", 16), 50257);
  EXPECT_THAT(text, AllOf(HasSubstr("3072 x 1152  3072 x 9216"), HasSubstr("384 x 3072  3072 x 3072"),
                          HasSubstr("3072 x 1536  3072 x 12288"), HasSubstr("1536 x 3072  12288 x 3072"),
                          HasSubstr("3072 x 6400  3072 x 51200")));
  EXPECT_THAT(text, AllOf(HasSubstr("3 numbers a token, not its 51,200 logits"), Not(HasSubstr("layers.1."))));
}

// 50,257 words over 8 x 4 ranks are padded to a multiple of 32 x 128.
TEST(Explanation, RanksOfAllStagesExchangeTheLossOfASharedVocabulary) {
  TrainConfig config = largest_of_megatron();
  config.layout.pipeline_parallel = 4;
  config.pipeline.vocabulary_parallel = true;
  const std::string text = explanation(config, find_cluster("dgx-2h", 32), 50257);
  EXPECT_THAT(text, AllOf(HasSubstr("Loss: 32 ranks of all stages exchange 3 numbers a token, not its 53,248 logits"),
                          HasSubstr("a token's 3,072 normed values"), HasSubstr("3072 x 1664  3072 x 53248")));
}

// Groups of 3 on hosts of 8: the third has ranks 6, 7 and 8.
TEST(Explanation, TensorGroupsThatCrossHostsAreToldAndPriced) {
  const Cluster cluster = find_cluster("dgx-a100", 24);
  const auto across = [&](int tensor) {
    return groups_across_hosts(groups_of({.tensor = tensor, .data = 24 / tensor}, &RankCoordinates::tensor), cluster);
  };
  EXPECT_EQ(across(4), 0);
  EXPECT_EQ(across(8), 0);
  EXPECT_EQ(across(3), 2);
  EXPECT_EQ(across(12), 2);
  EXPECT_EQ(slowest_tensor_group(cluster, 3, 8).first, 6);
  EXPECT_EQ(slowest_tensor_group(cluster, 3, 2).first, 0);  // 0 to 5 alone
  EXPECT_EQ(slowest_tensor_group(cluster, 4, 6).first, 0);
  const ModelConfig model = largest_of_megatron().model.config;
  const Slice slice{1, 1024, 0};
  const double within = ModelCosts(model, {.tensor = 3}, cluster).layer(slice).forward,
               crossing = ModelCosts(model, {.tensor = 3, .groups = 8}, cluster).layer(slice).forward;
  const double bytes = 1024 * 3072 * 2;
  EXPECT_NEAR(crossing - within,
              2e3 * (all_reduce_seconds(cluster, {.first = 6, .size = 3}, bytes) -
                     all_reduce_seconds(cluster, {.size = 3}, bytes)),
              1e-9);
  EXPECT_GT(crossing, 1.1 * within);
}

}  // namespace
}  // namespace teratron::testing
