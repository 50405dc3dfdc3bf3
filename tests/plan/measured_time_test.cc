// Choices by a measured profile, made of numbers here.
#include "plan/search/measured_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/philox.h"
#include "pipeline/timing/simulate.h"
#include "pipeline/token_slices.h"
#include "plan/search/pipeline_choice.h"
#include "train/plans/pipeline_plan.h"

namespace teratron::testing {
namespace {

using namespace plan;

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
    for (const std::int64_t first : {0, 9, -1}) {  // 0: equal numbers; -1: to be dealt
      for (const bool shared : {false, true}) {
        for (const bool deferred : {false, true}) {
          Layout layout = layout_of(config);
          layout.schedule = pipeline::ScheduleKind::kSeq1F1B;
          layout.slicing = {slices};
          if (first > 0) layout.layers = {first, 12 - first};
          layout.deals_layers = first < 0;
          layout.vocabulary_parallel = shared;
          layout.defer_weight_gradients = deferred;
          const double bound = times.least(layout);
          EXPECT_GT(bound, 0);
          if (layout.deals_layers) {
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

// Seconds of an update as the numbers of the profile say, with no doubt about them.
double exact_seconds(const TrainConfig& config, const slicing::Profile& profile, double beside_pass) {
  const PipelinePlan plan = plan_pipeline(config, &profile);
  const slicing::ProfileCosts measured(
      profile, 2, {.layers = plan.cell_layers, .vocabulary_parallel = config.pipeline.vocabulary_parallel});
  const std::vector<std::int64_t> whole = {kTokens};
  pipeline::Costs costs =
      slicing::schedule_costs(measured, plan.schedule, plan.cuts.empty() ? slicing::alike(profile, whole) : plan.cuts);
  slicing::add_to_passes(costs, beside_pass);
  return pipeline::simulate(plan.schedule, costs).iteration / 1000;
}

TEST(MeasuredTime, AutoIsAtMostTwoPerCentFromTheBestByHand) {
  RandomSequence random({.seed = 71});
  int plain = 0;
  for (int trial = 0; trial < 4; ++trial) {
    const double head = 5 * random.uniform(), beside_pass = trial % 2 == 0 ? 0 : 20 * random.uniform();
    const slicing::Profile profile = profile_of(head, beside_pass);
    TrainConfig config = training();
    config.batch.global_batch_size = trial % 3 == 0 ? 4 : 8;
    const Layout first = chosen(config, {.is_auto = true, .recompute = true}, profile).best.front().layout;
    double best = std::numeric_limits<double>::infinity();
    std::string by_hand;
    for (const pipeline::ScheduleKind kind : pipeline::kScheduleKinds) {
      for (const std::int64_t cells : {1, 2}) {
        for (const char* slices : {"", "uniform:2", "uniform:4", "384,336,304"}) {
          for (const std::int64_t first_layers : {0, 7, 8, 9}) {  // 0: equal numbers
            for (const bool deferred : {false, true}) {
              for (const bool shared : {false, true}) {
                Layout layout = layout_of(config);
                layout.schedule = kind;
                layout.virtual_stages = cells;
                layout.slicing = {slices};
                if (first_layers > 0) layout.layers = {first_layers, 12 - first_layers};
                layout.defer_weight_gradients = deferred;
                layout.vocabulary_parallel = shared;
                const TrainConfig one = with_layout(config, layout);
                if (!one.StepSettings::faults().empty()) continue;
                const double seconds = exact_seconds(one, profile, beside_pass);
                if (seconds >= best) continue;
                best = seconds;
                by_hand = layout.pipeline_text();
              }
            }
          }
        }
      }
    }
    EXPECT_LE(exact_seconds(with_layout(config, first), profile, beside_pass), 1.02 * best)
        << trial << ": " << first.pipeline_text() << " for " << by_hand;
    plain += first.slicing.is_whole() ? 1 : 0;
  }
  EXPECT_GT(plain, 0);
  EXPECT_LT(plain, 4);
}

// Slices gain several per cent without it.
TEST(MeasuredTime, SlicesAreLeftWhereTheTimeBesidePassesOutweighsThem) {
  const GivenPipeline given{.is_auto = true, .layout = true, .vocabulary_parallel = true, .recompute = true};
  EXPECT_FALSE(chosen(training(), given, profile_of(0)).best.front().layout.slicing.is_whole());
  const Layout layout = chosen(training(), given, profile_of(0, 12)).best.front().layout;
  EXPECT_TRUE(layout.slicing.is_whole()) << layout.text();
  EXPECT_EQ(layout.virtual_stages, 1) << layout.text();
}

TEST(MeasuredTime, AStageMakesAgainWhatItsMemoryAsksFor) {
  const slicing::Profile profile = profile_of(0);
  const TrainConfig config = training();
  const GivenPipeline given{.is_auto = true,
                            .virtual_stages = true,
                            .layout = true,
                            .token_slices = true,
                            .defer_weight_gradients = true,
                            .vocabulary_parallel = true};
  const Cluster cluster{.name = "here", .devices = 2, .device = {.name = "core", .memory = 1e18}};
  PlanRequest request = pipeline_request(config, given, cluster, 1000);
  request.fixed.schedule = pipeline::ScheduleKind::k1F1B;
  request.profile = &profile;
  const PlannedLayout kept = choose_pipeline(request).best.front();
  EXPECT_EQ(kept.layout.recompute, Recompute::kNone);
  ASSERT_GT(kept.memory[0], kept.memory[1]);
  request.cluster.device.memory = static_cast<double>(kept.memory[0] - 1);
  const PlannedLayout chosen = choose_pipeline(request).best.front();
  EXPECT_NE(chosen.layout.recompute.of(0).kind, Recompute::kNone);
  EXPECT_NE(chosen.layout.recompute.of(0).layers, 0);  // a part of the six is enough
  EXPECT_EQ(chosen.layout.recompute.of(1).kind, Recompute::kNone);
  EXPECT_LE(chosen.memory[0], kept.memory[0] - 1);
  request.fixed.recompute = Recompute::kFull;
  EXPECT_GT(chosen.time.seconds, kept.time.seconds);
  EXPECT_LT(chosen.time.seconds, choose_pipeline(request).best.front().time.seconds);
}

TEST(MeasuredTime, AProfileThatDoesNotFitItselfNeedsALargerGain) {
  TrainConfig config = training();
  const slicing::Profile quiet = profile_of(0), noisy = profile_of(0, 0, 0.1);
  Layout sliced = layout_of(config);
  sliced.schedule = pipeline::ScheduleKind::kSeq1F1B;
  sliced.slicing = {"768,256"};
  const auto gain = [&](const slicing::Profile& profile) {
    MeasuredTimes times(config, profile);
    return times.step(layout_of(config)).seconds / times.step(sliced).seconds;
  };
  EXPECT_LT(gain(noisy), 0.98 * gain(quiet));
}

}  // namespace
}  // namespace teratron::testing
