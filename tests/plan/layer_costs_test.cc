#include "plan/costs/layer_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "model/presets.h"

namespace teratron::testing {
namespace {

using namespace plan;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ModelConfig preset_model(std::string_view name) {
  const ModelPreset& preset = find_model_preset(name);
  ModelConfig model;
  model.set_kind(preset.kind);
  model.num_layers = preset.num_layers;
  model.hidden_size = preset.hidden_size;
  model.num_attention_heads = preset.num_attention_heads;
  return model;
}

struct Trial {
  ModelCosts costs;
  std::mt19937_64 random;
  std::int64_t to(std::int64_t most) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)); }
};

Trial random_trial(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string models[] = {"355M", "gpt3-1B", "gpt3-13B", "bert-336M"};
  const std::string clusters[] = {"dgx-2h", "p3.16xlarge", "dgx-a100", "dgx-h100", "h200"};
  const LayerSettings settings{.tensor = std::int64_t{1} << random() % 4,
                               .sequence_parallel = random() % 2 == 0,
                               .recompute = static_cast<Recompute>(random() % 3),
                               .dtype = random() % 4 == 0 ? DType::kF32 : DType::kBF16};
  const ModelConfig model = preset_model(models[random() % 4]);
  return {ModelCosts(model, settings, find_cluster(clusters[random() % 5], 16)), random};
}

TEST(LayerCosts, GrowWithSequencesTokensAndContext) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Trial trial = random_trial(seed);
    const Slice slice{1 + trial.to(8), 1 + trial.to(2048), trial.to(2048)};
    Slice larger = slice;
    (seed % 3 == 0 ? larger.sequences : seed % 3 == 1 ? larger.tokens : larger.context) += 1 + trial.to(500);
    const pipeline::PassTimes a = trial.costs.layer(slice), b = trial.costs.layer(larger);
    EXPECT_LE(a.forward, b.forward) << "seed " << seed;
    EXPECT_LE(a.backward_input, b.backward_input) << "seed " << seed;
    EXPECT_LE(a.backward_weight, b.backward_weight) << "seed " << seed;
    EXPECT_LT(a.forward + a.backward, b.forward + b.backward) << "seed " << seed;
    EXPECT_DOUBLE_EQ(a.backward, a.backward_input + a.backward_weight) << "seed " << seed;
    EXPECT_GT(a.forward, 0) << "seed " << seed;
  }
}

// Cutting a sequence changes no operation: the slices' are those of the model, by ModelConfig's own formula.
TEST(LayerCosts, OperationsOfSlicesAreTheModels) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const ModelConfig model = preset_model(seed % 2 == 0 ? "gpt3-1B" : "355M");
    const std::int64_t tensor = std::int64_t{1} << random() % 4;
    const ModelCosts costs(model, {.tensor = tensor}, find_cluster("p3.16xlarge", 8));
    const std::int64_t length = 1024;
    double operations = 0;
    for (std::int64_t at = 0; at < length;) {
      const std::int64_t tokens = std::min<std::int64_t>(length - at, 1 + static_cast<std::int64_t>(random() % 400));
      const Slice slice{3, tokens, at};
      operations +=
          static_cast<double>(model.num_layers) * costs.layer_operations(slice) + costs.head_operations(slice);
      at += tokens;
    }
    const double whole = 3 * 1024 * model.training_flops_per_token(length);
    EXPECT_NEAR(operations * static_cast<double>(tensor) / whole, 1, 1e-12) << "seed " << seed;
  }
}

// Frozen products have no weight gradient, and the small ones beside them have all that products have.
TEST(LayerCosts, CountAdaptersAndNoWeightGradientsOfFrozenWeights) {
  const ModelConfig model = preset_model("gpt3-1B");
  ModelConfig adapted = model;
  adapted.adapters = {.rank = 16, .targets = ~0U & ~static_cast<unsigned>(AdapterConfig::kPacked)};
  const Cluster cluster = find_cluster("p3.16xlarge", 8);
  const ModelCosts whole(model, {}, cluster), low(adapted, {}, cluster);
  const Slice slice{1, 1024, 0};
  const double of_low =
      static_cast<double>(model.num_layers) * low.layer_operations(slice) + low.head_operations(slice);
  EXPECT_NEAR(of_low / (1024 * adapted.training_flops_per_token(1024)), 1, 1e-12);
  EXPECT_GT(of_low, 0.66 * 1024 * model.training_flops_per_token(1024));
  EXPECT_LT(of_low, 0.75 * 1024 * model.training_flops_per_token(1024));
  EXPECT_GT(low.layer(slice).forward, whole.layer(slice).forward);
  EXPECT_LT(low.layer(slice).backward_weight, 0.5 * whole.layer(slice).backward_weight);
  EXPECT_EQ(low.head(slice).backward_weight, 0);
}

TEST(LayerCosts, TensorParallelismSplitsTheOperationsAndNotTheTime) {
  const ModelConfig model = preset_model("gpt3-13B");
  const Cluster cluster = find_cluster("p3.16xlarge", 8);
  const Slice slice{1, 512, 512};
  const ModelCosts whole(model, {}, cluster);
  for (const std::int64_t tensor : {2, 4, 8}) {
    const ModelCosts part(model, {.tensor = tensor}, cluster);
    EXPECT_DOUBLE_EQ(part.layer_operations(slice) * static_cast<double>(tensor), whole.layer_operations(slice));
    EXPECT_LT(part.layer(slice).forward, whole.layer(slice).forward);
    EXPECT_GT(part.layer(slice).forward * static_cast<double>(tensor), whole.layer(slice).forward);
  }
}

TEST(LayerCosts, RecomputingAddsWhatItMakesAgain) {
  const ModelConfig model = preset_model("gpt3-13B");
  Cluster cluster = find_cluster("dgx-a100", 8);
  const Slice slice{2, 1024, 256};
  const auto times = [&](Recompute recompute) {
    return ModelCosts(model, {.tensor = 4, .recompute = recompute}, cluster).layer(slice);
  };
  const pipeline::PassTimes none = times(Recompute::kNone), some = times(Recompute::kSelective);
  const pipeline::PassTimes full = times(Recompute::kFull);
  EXPECT_DOUBLE_EQ(none.forward, full.forward);
  // Without the MLP's last product, a third of what products are.
  EXPECT_LT(full.backward, none.backward + 0.8 * none.forward);
  EXPECT_GT(full.backward, none.backward + 0.6 * none.forward);
  EXPECT_GT(some.backward, none.backward);
  EXPECT_LT(some.backward, full.backward);
  EXPECT_DOUBLE_EQ(full.backward_weight, none.backward_weight);
  cluster.constants.push_back({"recomputes_all", 1, ""});
  EXPECT_NEAR(times(Recompute::kFull).backward, none.backward + none.forward, 1e-9 * full.backward);
}

TEST(LayerCosts, WiderHeadsAreFasterThanThoseThatTensorCoresDoNotTake) {
  Cluster cluster = find_cluster("dgx-a100", 8);
  const auto forward = [&](std::int64_t head_size, DType dtype) {
    ModelConfig model = preset_model("gpt3-13B");
    model.num_attention_heads = 128;
    model.hidden_size = 128 * head_size;
    return ModelCosts(model, {.tensor = 8, .dtype = dtype}, cluster).layer({4, 2048, 0}).forward;
  };
  EXPECT_LT(forward(108, DType::kBF16), forward(112, DType::kBF16));  // no products with written scores
  cluster.constants.push_back({"writes_scores", 1, ""});
  EXPECT_GT(forward(108, DType::kBF16), forward(112, DType::kBF16));
  EXPECT_LT(forward(104, DType::kBF16), forward(112, DType::kBF16));
  EXPECT_LT(forward(108, DType::kF32), forward(112, DType::kF32));
}

TEST(LayerCosts, NothingIsFasterThanPeakOrMemoryAllow) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const ModelConfig model = preset_model(seed % 2 == 0 ? "gpt3-1B" : "gpt3-13B");
    const Cluster cluster = find_cluster("h200", 8);
    const ModelCosts costs(model, {}, cluster);
    const Slice slice{1, 1 + static_cast<std::int64_t>(random() % 2048), 0};
    const pipeline::PassTimes times = costs.layer(slice);
    const double seconds = (times.forward + times.backward) / 1e3;
    const auto h = static_cast<double>(model.hidden_size);
    EXPECT_GT(seconds, costs.layer_operations(slice) / cluster.device.peak_16);
    EXPECT_GT(seconds, 3 * 12 * h * h * 2 / cluster.device.memory_bandwidth);  // weights are read twice, gradients made
  }
}

TEST(CostConstants, UnknownAndImpossibleOnesAreListedTogether) {
  Cluster cluster = find_cluster("dgx-a100");
  cluster.constants = {{"product_eficiency", 0.5, ""}, {"memory_efficiency", 1.5, ""}, {"kernel_start", 1e-6, "m"}};
  EXPECT_THAT([&] { constants_of(cluster); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("did you mean 'product_efficiency'"),
                                             HasSubstr("'memory_efficiency' of cluster 'dgx-a100' is 1.5"))));
  cluster.constants = {{"kernel_start", 1e-6, "m"}};
  EXPECT_EQ(constants_of(cluster).kernel_start, 1e-6);
  EXPECT_EQ(all_constants(cluster).size(), all_constants(find_cluster("h200")).size());
}

}  // namespace
}  // namespace teratron::testing
