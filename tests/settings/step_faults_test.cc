// Faults of the settings of a step name valid values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/reading.h"
#include "settings/step_options.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

FaultLines lines_of(const std::vector<std::string>& arguments) {
  StepSettings settings;
  FieldList fields = fields_of(settings);
  return read_fields(fields, arguments);
}

TEST(StepFaults, ThereAreNoneInTheDefaults) { EXPECT_THAT(StepSettings().faults(), IsEmpty()); }

TEST(StepFaults, LayersAndStagesHaveOneLimitWhichAModelOfACheckpointHasToo) {
  StepSettings settings;
  settings.model.config.num_layers = kMostLayers;
  EXPECT_THAT(settings.faults(), IsEmpty());
  EXPECT_THAT(settings.model.model_for(1).faults(), IsEmpty());
  settings.model.config.num_layers = kMostLayers + 1;
  EXPECT_THAT(settings.faults().texts(), ElementsAre("--num-layers is 16385; it must be at most 16384"));
  EXPECT_THAT(settings.model.model_for(1).faults().texts(),
              ElementsAre("--num-layers is 16385; it must be at most 16384"));
  settings = {};
  settings.layout.pipeline_parallel = kMostLayers + 1;
  EXPECT_THAT(settings.faults().texts(),
              ElementsAre("--pipeline-model-parallel-size is 16385; it must be at most 16384"));
}

TEST(StepFaults, NearestValuesThatWorkAreNamed) {
  StepSettings settings;
  settings.layout.data_parallel = 3;
  for (const std::int64_t size : {3, 10, 48}) {
    settings.batch.global_batch_size = size;
    EXPECT_THAT(settings.faults(), IsEmpty()) << size;
  }
  settings.batch.global_batch_size = 2;
  EXPECT_THAT(settings.faults().texts(),
              ElementsAre("--global-batch-size 2 has no sample for some of the copies of --data-parallel-size 3; the "
                          "least that works is 3"));
}

TEST(StepFaults, ARampThatCannotBeIsReportedWithWhatWouldWork) {
  const auto faults = [](std::vector<std::int64_t> ramp, std::int64_t global_batch, std::int64_t copies = 1) {
    StepSettings settings;
    settings.batch.rampup_batch_size = std::move(ramp);
    settings.batch.global_batch_size = global_batch;
    settings.layout.data_parallel = copies;
    return settings.faults().texts();
  };
  EXPECT_THAT(faults({32, 32, 100000}, 512), IsEmpty());
  EXPECT_THAT(faults({512, 1, 1}, 512), IsEmpty());
  EXPECT_THAT(faults({32, 32}, 512), ElementsAre(AllOf(HasSubstr("has 2 numbers"), HasSubstr("START INCREMENT"))));
  EXPECT_THAT(faults({32, 50, 1000}, 512), ElementsAre(HasSubstr("nearest that it reaches: 482, 532")));
  EXPECT_THAT(faults({600, 32, 1000}, 512), ElementsAre(HasSubstr("above the --global-batch-size of 512")));
  EXPECT_THAT(faults({2, 2, 1000}, 512, 4), ElementsAre(HasSubstr("the least that works is 4")));
  EXPECT_THAT(faults({0, 0, 0}, 512),
              ElementsAre(HasSubstr("0 as START"), HasSubstr("0 as INCREMENT"), HasSubstr("0 as SAMPLES")));
  EXPECT_THAT(faults({1, 1, 1000}, 1 << 20), ElementsAre(HasSubstr("at most 65536: choose a larger one")));
  EXPECT_THAT(lines_of({"--rampup-batch-size", "2", "x", "9"}),
              ElementsAre(HasSubstr("--rampup-batch-size is '2 x 9'; whole numbers are needed")));
}

TEST(StepFaults, CudnnIsOfGpusAndSixteenBits) {
  StepSettings settings;
  settings.backend.cudnn_attention = KernelUse::kRequired;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre(HasSubstr("--cudnn-attention on needs --backend cuda")));
  settings.backend.kind = BackendKind::kCuda;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre(HasSubstr("--bf16 or --fp16")));
  settings.backend.bf16 = true;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre());
}

TEST(StepFaults, HopperAttentionIsOfGpusAndSixteenBitsAndNotBesideCudnn) {
  StepSettings settings;
  settings.backend.hopper_attention = KernelUse::kRequired;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre(HasSubstr("--hopper-attention on needs --backend cuda")));
  settings.backend.kind = BackendKind::kCuda;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre(HasSubstr("--bf16 or --fp16")));
  settings.backend.fp16 = true;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre());
  settings.backend.cudnn_attention = KernelUse::kRequired;
  EXPECT_THAT(settings.faults().texts(), UnorderedElementsAre(HasSubstr("leave one of them out")));
}

TEST(StepFaults, AnUnknownPresetListsThoseThereAre) {
  EXPECT_THAT(lines_of({"--model", "gpt5"}),
              ElementsAre(AllOf(HasSubstr("'gpt5'"), HasSubstr("124M"), HasSubstr("8.3B"))));
}

}  // namespace
}  // namespace teratron::testing
