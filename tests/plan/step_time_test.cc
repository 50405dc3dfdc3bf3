#include "plan/costs/step_time.h"

#include <gtest/gtest.h>

#include "cluster/cluster_file.h"
#include "cluster/collective_time.h"
#include "model/presets.h"

namespace teratron::testing {
namespace {

using namespace plan;

constexpr std::int64_t kWords = 51200;

TrainConfig some_config() {
  TrainConfig config;
  config.model.config.num_layers = 8;
  config.model.config.hidden_size = 1024;
  config.model.config.num_attention_heads = 16;
  config.model.config.vocab_size = kWords;
  config.model.config.max_position_embeddings = 1024;
  config.model.seq_length = 1024;
  config.batch.micro_batch_size = 2;
  config.batch.global_batch_size = 16;
  config.backend.bf16 = true;
  return config;
}

TEST(StepTime, OnOneDeviceIsTheSumOfItsParts) {
  const TrainConfig config = some_config();
  const Cluster cluster = find_cluster("dgx-a100", 1);
  const ModelConfig model = config.model.model_for(kWords);
  const ModelCosts costs(model, {.dtype = DType::kBF16}, cluster);
  const Slice slice{2, 1024, 0};
  const auto both = [](const pipeline::PassTimes& times) { return (times.forward + times.backward) / 1e3; };
  const double passes = 8 * (8 * both(costs.layer(slice)) + both(costs.embedding(slice)) + both(costs.head(slice)));
  const StepTime time = predict_step(config, cluster, kWords);
  EXPECT_NEAR(time.pipeline_seconds, passes, 1e-9);
  EXPECT_NEAR(time.seconds, passes + costs.update_seconds(static_cast<double>(model.parameters())), 1e-9);
  EXPECT_NEAR(time.bubble_share, 0, 1e-9);
  EXPECT_DOUBLE_EQ(time.tokens_per_second, 16 * 1024 / time.seconds);
  EXPECT_NEAR(time.flops_utilization * cluster.device.peak_16 * time.seconds,
              16 * 1024 * model.training_flops_per_token(1024), 1e3);
}

// Operations of Muon's five iterations on the six matrices of a layer, by hand: 6 h^3 for each of four squares, 18 h^3
// for each of the two of the MLP.
TEST(StepTime, MuonsUpdateHasItsProducts) {
  TrainConfig config = some_config();
  const auto seconds = [&](OptimizerKind kind, std::int64_t tensor, bool shares) {
    config.optimizer.kind = kind;
    config.layout.tensor_parallel = tensor;
    config.layout.data_parallel = shares ? 2 : 1;
    config.layout.distributed_optimizer = shares;
    return work_of(config, find_cluster("dgx-a100", 8), kWords).update_seconds.front();
  };
  const double alone = seconds(OptimizerKind::kMuon, 1, false) - seconds(OptimizerKind::kAdamW, 1, false);
  const double h = static_cast<double>(config.model.config.hidden_size),
               operations = 8 * 5 * (4 * 6 + 2 * 18) * h * h * h;
  const double products = operations / (find_cluster("dgx-a100").device.peak_16 * 0.69);
  EXPECT_GT(alone, products);
  EXPECT_LT(alone, 2 * products);
  const double of_four = seconds(OptimizerKind::kMuon, 4, false) - seconds(OptimizerKind::kAdamW, 4, false);
  EXPECT_GT(of_four, alone / 4);
  EXPECT_LT(of_four, alone / 2);
  EXPECT_LT(seconds(OptimizerKind::kMuon, 1, true), seconds(OptimizerKind::kMuon, 1, false));
}

// Narayanan et al. (arXiv 2104.04473) count a forward once more where all is made again: four thirds of the layers'.
TEST(StepTime, RecomputedWorkIsPartOfTheShareOfThePeak) {
  TrainConfig config = some_config();
  const Cluster cluster = find_cluster("dgx-2h", 1);
  const StepTime kept = predict_step(config, cluster, kWords);
  EXPECT_DOUBLE_EQ(kept.hardware_utilization, kept.flops_utilization);
  config.layout.recompute = name_of(Recompute::kFull);
  const StepTime again = predict_step(config, cluster, kWords);
  const double all = config.model.model_for(kWords).training_flops_per_token(1024), head = 6.0 * 1024 * kWords;
  EXPECT_NEAR(again.hardware_utilization / again.flops_utilization, 1 + (all - head) / 3 / all, 1e-12);
}

// Whatever stage they are on, so many of the layers are made again, of slices the attention to what is before them,
// too.
TEST(StepTime, RecomputedWorkIsThatOfTheLayersAndSlicesThatHaveIt) {
  TrainConfig config = some_config();
  const Cluster cluster = find_cluster("dgx-2h", 2);
  const std::int64_t layers = config.model.config.num_layers;
  config.layout.pipeline_parallel = 2;
  const auto more = [&](const std::string& recompute, const std::string& slices) {
    config.layout.recompute = recompute;
    config.pipeline.token_slices = slices;
    const StepTime time = predict_step(config, cluster, kWords);
    return time.hardware_utilization / time.flops_utilization - 1;
  };
  const double whole = more("full", "");
  ASSERT_GT(whole, 0);
  EXPECT_NEAR(more("full", "uniform:2"), whole, 1e-9);
  EXPECT_NEAR(more("full,none", ""), whole / 2, 1e-9);
  EXPECT_NEAR(more("none,full:1", ""), whole / static_cast<double>(layers), 1e-9);
  EXPECT_NEAR(more("selective@1", "uniform:2"), more("selective", "") / 4, 1e-9);  // of a triangle
}

// Before a pass all weights that copies share out are gathered; after an update those that it changed.
TEST(StepTime, FrozenWeightsAreGatheredWhereCopiesShareThemOut) {
  TrainConfig config = some_config();
  config.layout.data_parallel = 2;
  config.layout.distributed_optimizer = true;
  const Cluster cluster = find_cluster("dgx-a100", 8);
  const auto gathered = [&](DataSharding sharding, std::int64_t rank) {
    config.layout.data_sharding = sharding;
    config.model.config.adapters = {.rank = rank, .targets = AdapterConfig::kPacked};
    return work_of(config, cluster, kWords).weight_bytes.front();
  };
  EXPECT_GE(gathered(DataSharding::kWeights, 4), gathered(DataSharding::kWeights, 0));
  EXPECT_LT(gathered(DataSharding::kGradients, 4), gathered(DataSharding::kGradients, 0) / 100);
}

// The cells of a rank are the model: embedding and position once, its tied copy once more where there are stages.
TEST(StepTime, GradientsOfAllStagesAreTheModels) {
  for (const std::int64_t stages : {1, 2, 4}) {
    TrainConfig config = some_config();
    config.layout.pipeline_parallel = stages;
    config.layout.data_parallel = 2;
    const Cluster cluster = find_cluster("dgx-a100", 8);
    const simulation::PipelineWork work = work_of(config, cluster, kWords);
    double bytes = 0;
    for (const double of_cell : work.gradient_bytes) bytes += of_cell;
    const double copy = stages > 1 ? 1024.0 * kWords : 0;
    EXPECT_DOUBLE_EQ(bytes, 4 * (static_cast<double>(config.model.config.parameters()) + copy)) << stages << " stages";
    EXPECT_DOUBLE_EQ(work.tied_bytes, 4 * copy);
    EXPECT_EQ(work.message_bytes, std::vector{2.0 * 2 * 1024 * 1024});
  }
}

// executor/stream_messages.h: a part of the stream from each rank, and a gather where it arrives; with sequence
// parallelism a rank has no more than its part.
TEST(StepTime, TensorParallelRanksSendTheirPartsAndGatherThem) {
  TrainConfig config = some_config();
  config.layout.pipeline_parallel = 2;
  config.layout.tensor_parallel = 4;
  const Cluster cluster = find_cluster("dgx-a100", 8);
  const double whole = 2.0 * 2 * 1024 * 1024;
  const simulation::PipelineWork gathers = work_of(config, cluster, kWords);
  EXPECT_EQ(gathers.message_bytes, std::vector{whole / 4});
  const ModelConfig model = config.model.model_for(kWords);
  const ModelCosts costs(model, {.tensor = 4, .dtype = DType::kBF16}, cluster);
  const Slice slice{2, 1024, 0};
  const double gather = 1e3 * all_gather_seconds(cluster, {.size = 4}, whole);
  EXPECT_GT(gather, 0);
  const double layers = static_cast<double>(config.model.config.num_layers) / 2;
  const pipeline::PassTimes passes = costs.layer(slice).times(layers);
  EXPECT_NEAR(gathers.costs.passes[1][0].forward, passes.forward + gather, 1e-9);
  EXPECT_NEAR(gathers.costs.passes[0][0].backward, passes.backward + costs.embedding(slice).backward + gather, 1e-9);
  config.layout.sequence_parallel = true;
  EXPECT_EQ(work_of(config, cluster, kWords).message_bytes, std::vector{whole / 4});
  EXPECT_EQ(ModelCosts(model, {.tensor = 4, .sequence_parallel = true}, cluster).gather_after_message(slice), 0);
}

// TeraPipe (arXiv 2102.07988) Figure 5, settings that split layers over the 8 GPUs of a host: the published seconds of
// an update's passes and messages (the paper has no tied embedding, whose sum follows them here). Each message crossing
// 8 times made them 1.8 to 4.1 times as long.
TEST(StepTime, TeraPipesTensorParallelSettingsTakeThePublishedTimeByOurOwnMessages) {
  struct Setting {
    const char *preset, *slices;
    std::int64_t stages, sequences;
    double whole, sliced;
  };
  const Setting settings[] = {
      {"gpt3-13B", "704,688,656", 40, 32, 1.863, 1.328},
      {"gpt3-44B", "384,384,368,320,296,296", 48, 8, 2.662, 1.111},
      {"gpt3-175B", "uniform:16", 48, 2, 5.822, 1.160},
  };
  for (const Setting& setting : settings) {
    const ModelPreset& preset = find_model_preset(setting.preset);
    TrainConfig config;
    config.model.config.num_layers = preset.num_layers;
    config.model.config.hidden_size = preset.hidden_size;
    config.model.config.num_attention_heads = preset.num_attention_heads;
    config.model.config.vocab_size = 50257;
    config.model.seq_length = 2048;
    config.batch.micro_batch_size = 1;
    config.batch.global_batch_size = setting.sequences;
    config.layout.tensor_parallel = 8;
    config.layout.pipeline_parallel = setting.stages;
    config.backend.fp16 = true;
    const Cluster cluster = find_cluster("p3.16xlarge", 8 * setting.stages);
    const auto seconds = [&](pipeline::ScheduleKind schedule, const char* slices) {
      config.pipeline.schedule = schedule;
      config.pipeline.token_slices = slices;
      return predict_step(config, cluster, 50257).pipeline_seconds;
    };
    EXPECT_NEAR(seconds(pipeline::ScheduleKind::kGpipe, "") / setting.whole, 1, 0.15) << setting.preset;
    EXPECT_NEAR(seconds(pipeline::ScheduleKind::kTeraPipe, setting.slices) / setting.sliced, 1, 0.15) << setting.preset;
  }
}

TEST(StepTime, UnevenMicroBatchesAndSlicesHaveColumnsOfTheirOwn) {
  TrainConfig config = some_config();
  config.layout.pipeline_parallel = 2;
  config.batch.global_batch_size = 5;  // 2, 2 and 1 sequences
  config.pipeline.token_slices = "512,256,256";
  const simulation::PipelineWork work = work_of(config, find_cluster("dgx-a100", 8), kWords);
  EXPECT_EQ(work.costs.first_columns, (std::vector<std::size_t>{0, 3, 6}));
  ASSERT_EQ(work.message_bytes.size(), 9U);
  EXPECT_DOUBLE_EQ(work.message_bytes[0], 2.0 * 2 * 512 * 1024);
  EXPECT_DOUBLE_EQ(work.message_bytes[8], 2.0 * 256 * 1024);
  EXPECT_LT(work.costs.passes[0][6].forward, work.costs.passes[0][0].forward);
  EXPECT_GT(work.costs.passes[0][2].forward, work.costs.passes[0][1].forward);  // more context
}

TEST(StepTime, MoreDevicesAreFasterButNotInProportion) {
  const auto seconds = [](std::int64_t tensor, std::int64_t stages, std::int64_t copies) {
    TrainConfig config = some_config();
    config.layout.tensor_parallel = tensor;
    config.layout.pipeline_parallel = stages;
    config.layout.data_parallel = copies;
    return predict_step(config, find_cluster("dgx-a100", 8), kWords).seconds;
  };
  const double one = seconds(1, 1, 1);
  for (const double two : {seconds(2, 1, 1), seconds(1, 2, 1), seconds(1, 1, 2)}) {
    EXPECT_LT(two, one);
    EXPECT_GT(two, one / 2);
  }
}

}  // namespace
}  // namespace teratron::testing
