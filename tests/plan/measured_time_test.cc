// Choices by a measured profile, made of numbers here.
#include "plan/search/measured_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "plan/search/pipeline_choice.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kTokens = 1024;
const slicing::CostModel kLayer{
    .lengths = {16, 256, 1024}, .without_context = {0.3, 2.6, 10.4}, .context = {0.01, 0, 0, 0}};

// Two stages of 6 layers, of 10 ms forward each, and a head on the second.
slicing::Profile profile_of(double head_in_layers, double beside_pass = 0, double noise = 0) {
  slicing::Profile profile;
  for (const double head : {0.0, head_in_layers}) {
    profile.stages.push_back({.forward = kLayer.times(6), .backward = kLayer.times(12 + 3 * head)});
  }
  profile.key.cell_layers = "6,6";
  profile.key.stages = 2;
  profile.key.tokens = kTokens;
  profile.key.recompute = "none";
  profile.transfer = {.fixed = 0.02, .per_token = 1e-5};
  for (const int count : {1, 2, 4, 8, 16, 32})
    profile.iterations.push_back({.slices = pipeline::even_slices(kTokens, count)});
  for (const int count : {1, 4, 8}) {
    profile.iterations.push_back({.slices = pipeline::even_slices(kTokens, count), .micro_batches = 4});
  }
  double sign = 1;
  for (slicing::MeasuredIteration& iteration : profile.iterations) {
    const pipeline::Schedule schedule = slicing::schedule_of(iteration, 2);
    pipeline::Costs costs =
        slicing::schedule_costs(slicing::ProfileCosts(profile, 2), schedule, slicing::alike(profile, iteration.slices));
    slicing::add_to_passes(costs, beside_pass);
    iteration.pipeline = pipeline::simulate(schedule, costs).iteration * (1 + sign * noise);
    sign = -sign;
  }
  return profile;
}

TrainConfig training() {
  TrainConfig config;
  config.data_path = {"corpus"};
  config.train_iters = 1;
  config.model.seq_length = kTokens;
  config.model.config.num_layers = 12;
  config.model.config.vocab_size = 1000;
  config.layout.pipeline_parallel = 2;
  config.batch.micro_batch_size = 1;
  config.batch.global_batch_size = 8;
  return config;
}

SearchResult chosen(const TrainConfig& config, const GivenPipeline& given, const slicing::Profile& profile) {
  const Cluster cluster{.name = "here", .devices = 2, .device = {.name = "core", .memory = 1e18}};
  PlanRequest request = pipeline_request(config, given, cluster, 1000);
  request.profile = &profile;
  return choose_pipeline(request);
}

TEST(MeasuredTime, AHeavyHeadsStageGetsFewerLayers) {
  const slicing::Profile profile = profile_of(4);
  TrainConfig config = training();
  config.pipeline.layout = "auto";
  const PlannedLayout best = chosen(config, {.layout_is_auto = true}, profile).best.front();
  EXPECT_EQ(best.config.pipeline.layout, "8,4");  // and 4 of the head
  config.pipeline.layout.clear();
  MeasuredTimes times(config, profile);
  Layout equal = layout_of(config);
  EXPECT_GT(times.step(equal).seconds, 1.15 * times.step(best.layout).seconds);
}

TEST(MeasuredTime, NoPipelineIsFasterThanItsBound) {
  const slicing::Profile profile = profile_of(3, 0.05);
  const TrainConfig config = training();
  MeasuredTimes times(config, profile);
  for (const char* slices : {"", "uniform:4", "512,384,128"}) {
    for (const char* layers : {"", "9,3", "best"}) {
      for (const bool shared : {false, true}) {
        for (const bool deferred : {false, true}) {
          Layout layout = layout_of(config);
          layout.schedule = pipeline::ScheduleKind::kSeq1F1B;
          layout.token_slices = slices;
          layout.layers = layers;
          layout.vocabulary_parallel = shared;
          layout.defer_weight_gradients = deferred;
          const double bound = times.least(layout);
          EXPECT_GT(bound, 0);
          if (deals_layers(layout)) {
            for (const Layout& one : dealt(config, layout))
              EXPECT_LE(bound, times.least(one) * (1 + 1e-12)) << one.text();
          } else {
            EXPECT_LE(bound, times.step(layout).seconds) << layout.text();
          }
        }
      }
    }
  }
}

// Slices gain several per cent without it.
TEST(MeasuredTime, SlicesAreLeftWhereTheTimeBesidePassesOutweighsThem) {
  const GivenPipeline given{.is_auto = true, .layout = true, .vocabulary_parallel = true, .recompute = true};
  EXPECT_NE(chosen(training(), given, profile_of(0)).best.front().layout.token_slices, "");
  const Layout layout = chosen(training(), given, profile_of(0, 12)).best.front().layout;
  EXPECT_EQ(layout.token_slices, "") << layout.text();
  EXPECT_EQ(layout.virtual_stages, 1) << layout.text();
}

TEST(MeasuredTime, AProfileThatDoesNotFitItselfNeedsALargerGain) {
  TrainConfig config = training();
  const slicing::Profile quiet = profile_of(0), noisy = profile_of(0, 0, 0.1);
  Layout sliced = layout_of(config);
  sliced.schedule = pipeline::ScheduleKind::kSeq1F1B;
  sliced.token_slices = "768,256";
  const auto gain = [&](const slicing::Profile& profile) {
    MeasuredTimes times(config, profile);
    return times.step(layout_of(config)).seconds / times.step(sliced).seconds;
  };
  EXPECT_LT(gain(noisy), 0.98 * gain(quiet));
}

}  // namespace
}  // namespace teratron::plan
