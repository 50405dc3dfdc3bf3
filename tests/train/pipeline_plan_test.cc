// The pipeline that a configuration asks for.
#include "train/plans/pipeline_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/files/file.h"
#include "pipeline/checker.h"
#include "pipeline/deferral.h"
#include "pipeline/memory.h"
#include "pipeline/timing/simulate.h"
#include "train/random_pipeline.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Whatever has no faults can be planned, and the plan adds up.
TEST(PipelinePlan, IsMadeOfEverythingWithoutFaults) {
  RandomSequence random(RandomStream{.seed = 6});
  TrainConfig config;
  config.train_iters = 1;
  config.model.seq_length = 64;
  for (int trial = 0; trial < 300; ++trial) {
    config.batch.global_batch_size = static_cast<std::int64_t>(2 + random.below(9));
    const TrainConfig layout = random_pipeline(config, random);
    ASSERT_THAT(layout.faults(), IsEmpty()) << text_of_layout(layout);
    const PipelinePlan plan = plan_pipeline(layout);
    std::int64_t layers = 0;
    for (const std::int64_t cell : plan.cell_layers) layers += cell;
    EXPECT_EQ(layers, 12);
    for (const pipeline::MicroBatchCut& cut : plan.cuts) EXPECT_EQ(cut.tokens(), 64);
    EXPECT_EQ(plan.kind, schedule_kind(layout.pipeline));
    const std::int64_t share =
        (config.batch.global_batch_size + layout.layout.data_parallel - 1) / layout.layout.data_parallel;
    const bool is_joint = layout.pipeline.token_slices.find('x') != std::string::npos;
    EXPECT_EQ(
        plan.schedule.micro_batches,
        is_joint ? std::ssize(plan.cuts) : (share + layout.batch.micro_batch_size - 1) / layout.batch.micro_batch_size);
    EXPECT_EQ(text_of(plan).empty(), plan.schedule.stages == 1 && plan.schedule.slices == 1 && plan.cuts.size() < 2);
  }
}

TEST(PipelinePlan, SlicesAskForSeq1F1BWhereNothingElseDoes) {
  TrainConfig config;
  EXPECT_EQ(schedule_kind(config.pipeline), pipeline::ScheduleKind::k1F1B);
  config.pipeline.token_slices = "uniform:4";
  EXPECT_EQ(schedule_kind(config.pipeline), pipeline::ScheduleKind::kSeq1F1B);
  config.pipeline.schedule = pipeline::ScheduleKind::kTeraPipe;
  EXPECT_EQ(schedule_kind(config.pipeline), pipeline::ScheduleKind::kTeraPipe);
  config.pipeline.schedule.reset();
  config.pipeline.virtual_stages = 2;
  EXPECT_EQ(schedule_kind(config.pipeline), pipeline::ScheduleKind::kSeq1F1BInterleaved);
  config.pipeline.token_slices.clear();
  EXPECT_EQ(schedule_kind(config.pipeline), pipeline::ScheduleKind::kInterleaved);
}

slicing::Profile measured() {
  const std::string path = TERATRON_SOURCE_DIR "/docs/figures/profile.json";
  return slicing::profile_from_json(read_file(path), path);
}

TrainConfig sliced(const char* slices) {
  TrainConfig config;
  config.train_iters = 1;
  config.model.seq_length = 2048;
  config.layout.pipeline_parallel = 4;
  config.pipeline.token_slices = slices;
  return config;
}

TEST(PipelinePlan, AutoTakesSlicesWithinTwoPerCentOfTheBest) {
  const slicing::Profile profile = measured();
  for (const pipeline::ScheduleKind kind :
       {pipeline::ScheduleKind::kSeq1F1B, pipeline::ScheduleKind::kSeq1F1BInterleaved,
        pipeline::ScheduleKind::kVHalf}) {
    const auto time_of = [&](const char* slices) {
      TrainConfig config = sliced(slices);
      config.pipeline.schedule = kind;
      config.pipeline.virtual_stages = kind == pipeline::ScheduleKind::kSeq1F1B ? 1 : 2;
      const PipelinePlan plan = plan_pipeline(config, &profile);
      return pipeline::simulate(plan.schedule, plan.costs).iteration;
    };
    for (const char* other : {"uniform:2", "uniform:4", "uniform:8", "uniform:16", "uniform:64", "1024,512,512"}) {
      EXPECT_LE(time_of("auto"), 1.02 * time_of(other)) << other << " " << pipeline::name_of(kind);
    }
  }
  EXPECT_THAT(text_of(plan_pipeline(sliced("auto"), &profile)),
              AllOf(HasSubstr("seq1f1b"), HasSubstr("by the profile")));
}

TEST(PipelinePlan, SlicesAreWholeOnEveryRankOfSequenceParallelism) {
  const slicing::Profile profile = measured();
  for (const char* slices : {"auto", "uniform:5"}) {
    TrainConfig config = sliced(slices);
    config.layout.tensor_parallel = 3;
    config.model.config.hidden_size = 36;
    config.model.config.num_attention_heads = 12;
    config.model.seq_length = 2046;
    config.layout.sequence_parallel = true;
    config.batch.micro_batch_size = 1;
    ASSERT_THAT(config.faults(), IsEmpty());
    const PipelinePlan plan = plan_pipeline(config, &profile);
    EXPECT_EQ(std::accumulate(plan.slices_of(0).begin(), plan.slices_of(0).end(), std::int64_t{0}), 2046);
    for (const std::int64_t length : plan.slices_of(0)) EXPECT_EQ(length % 3, 0);
  }
}

TEST(PipelinePlan, FlushesHoldAPartOfTheMicroBatchesAtATime) {
  RandomSequence random(RandomStream{.seed = 7});
  for (int trial = 0; trial < 40; ++trial) {
    TrainConfig config = sliced("uniform:3");
    config.pipeline.schedule = pipeline::ScheduleKind::kTeraPipe;
    config.batch.micro_batch_size = 1;
    config.batch.global_batch_size = static_cast<std::int64_t>(1 + random.below(12));
    config.pipeline.flushes =
        static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(config.batch.global_batch_size)));
    ASSERT_THAT(config.faults(), IsEmpty());
    const pipeline::Schedule schedule = plan_pipeline(config).schedule;
    EXPECT_THAT(pipeline::schedule_faults(schedule), IsEmpty());
    const std::int64_t most = (config.batch.global_batch_size + config.pipeline.flushes - 1) / config.pipeline.flushes;
    for (const pipeline::MemoryPeak& peak : pipeline::memory_peaks(schedule)) EXPECT_EQ(peak.slices, 3 * most);
  }
}

TEST(PipelinePlan, DeferredWeightGradientsTakeNoMoreMemoryAndFillBubbles) {
  TrainConfig config;
  config.train_iters = 1;
  config.layout.pipeline_parallel = 4;
  config.pipeline.layout = "2,4,4,2";  // of cells that cost what their layers do
  config.batch.micro_batch_size = 1;
  config.batch.global_batch_size = 8;
  const PipelinePlan before = plan_pipeline(config);
  config.pipeline.defer_weight_gradients = true;
  const PipelinePlan after = plan_pipeline(config);
  EXPECT_EQ(pipeline::most_live_slices(after.schedule), pipeline::most_live_slices(before.schedule));
  EXPECT_LT(pipeline::simulate(after.schedule, after.costs).iteration,
            pipeline::simulate(before.schedule, before.costs).iteration);
  EXPECT_DOUBLE_EQ(after.costs.passes[1][0].forward, 2 * after.costs.passes[0][0].forward);
}

TEST(PipelinePlan, AnInterleavedScheduleHasTheMicroBatchesThereAre) {
  TrainConfig config;
  config.layout.pipeline_parallel = 3;
  config.pipeline.virtual_stages = 2;
  config.pipeline.schedule = pipeline::ScheduleKind::kInterleaved;
  config.batch.micro_batch_size = 1;
  for (const std::int64_t batch : {1, 2, 3, 4, 7}) {
    config.batch.global_batch_size = batch;
    const PipelinePlan plan = plan_pipeline(config);
    EXPECT_EQ(plan.schedule.micro_batches, batch);
    EXPECT_THAT(pipeline::schedule_faults(plan.schedule), IsEmpty());
    EXPECT_THAT(plan.schedule.actions, Each(SizeIs(static_cast<std::size_t>(4 * batch))));
  }
}

}  // namespace
}  // namespace teratron::testing
