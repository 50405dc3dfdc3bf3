// A training step on a cluster against closed forms, and against the simulation of pipeline/ where it knows everything.
#include "simulation/pipeline_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/random_schedule.h"
#include "pipeline/timing/closed_form.h"
#include "pipeline/timing/simulate.h"

namespace teratron::testing {
namespace {

using namespace simulation;
using pipeline::Costs;
using pipeline::PassTimes;
using pipeline::Schedule;
using pipeline::ScheduleKind;
using pipeline::ScheduleSize;

constexpr double kMillisecondRounding = 1e-9;  // milliseconds; sums of a few hundred terms of order 1 to 10
constexpr double kMilli = 1e-3;

Cluster hosts_of_8(std::int64_t devices, double latency = 0) {
  Cluster cluster;
  cluster.name = "test";
  cluster.devices = devices;
  cluster.links = {{.name = "inner",
                    .devices = std::min<std::int64_t>(8, devices),
                    .bandwidth = 100e9,
                    .latency = latency,
                    .from = ""}};
  if (devices > 8) {
    cluster.links.push_back(
        {.name = "network", .devices = devices, .bandwidth = 10e9, .is_shared = true, .latency = latency, .from = ""});
  }
  return cluster;
}

PipelineWork work_of(const Schedule& schedule, const Costs& costs) { return {.schedule = schedule, .costs = costs}; }

TEST(PipelineRun, WithStagesAlikeAndLinksFreeTheBubbleIsTheClosedForm) {
  RandomSequence random(RandomStream{.seed = 1});
  const Cluster cluster = hosts_of_8(8);
  for (const ScheduleKind kind : kAllKinds) {
    for (int trial = 0; trial < 40; ++trial) {
      const ScheduleSize size = random_size(random, kind);
      const double forward = 1 + random.uniform(), backward = forward * (1 + random.uniform());
      const Schedule schedule = pipeline::make_schedule(kind, size);
      const PipelineResult result = simulate(work_of(schedule, even_costs(schedule, forward, backward)), cluster);
      const double work = size.micro_batches * (forward + backward);
      const std::optional<pipeline::ClosedForm> form = closed_form(kind, size, forward, backward);
      if (!form) break;
      ASSERT_NEAR(1e3 * result.seconds - work, form->bubble, kMillisecondRounding)
          << name_of(kind) << " " << size.stages << " " << size.micro_batches << " " << size.slices;
      ASSERT_NEAR(result.stages.back().bubble_share, 1 - work / (1e3 * result.pipeline_seconds), kMillisecondRounding);
    }
  }
}

Costs costs_with_transfer(const Schedule& schedule, RandomSequence& random, double transfer) {
  Costs costs = random_costs(schedule, random);
  costs.transfers.assign(static_cast<std::size_t>(schedule.slices), transfer);
  return costs;
}

TEST(PipelineRun, WhereTransfersAreLatencyAloneItIsTheSimulationOfPipeline) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    RandomSequence random(RandomStream{.seed = seed});
    const Schedule schedule = any_schedule(random);
    const double latency = random.below(4) == 0 ? 0 : random.uniform();
    const Costs costs = costs_with_transfer(schedule, random, latency);
    const PipelineResult result = simulate(work_of(schedule, costs), hosts_of_8(8, latency * kMilli));
    const pipeline::Simulation expected = pipeline::simulate(schedule, costs);
    ASSERT_NEAR(1e3 * result.seconds, expected.iteration, kMillisecondRounding) << seed;
    for (std::size_t stage = 0; stage < expected.actions.size(); ++stage) {
      ASSERT_EQ(result.timeline.actions[stage].size(), expected.actions[stage].size());
      ASSERT_NEAR(result.timeline.busy[stage], expected.busy[stage], kMillisecondRounding) << seed;
      for (std::size_t place = 0; place < expected.actions[stage].size(); ++place) {
        ASSERT_EQ(result.timeline.actions[stage][place].action, expected.actions[stage][place].action);
        ASSERT_NEAR(result.timeline.actions[stage][place].start, expected.actions[stage][place].start,
                    kMillisecondRounding);
        ASSERT_NEAR(result.timeline.actions[stage][place].end, expected.actions[stage][place].end,
                    kMillisecondRounding);
      }
    }
  }
}

TEST(PipelineRun, TheSameWorkTakesTheSameTimeToTheBit) {
  RandomSequence random(RandomStream{.seed = 5});
  for (int trial = 0; trial < 20; ++trial) {
    const Schedule schedule = any_schedule(random);
    PipelineWork work = work_of(schedule, costs_with_transfer(schedule, random, 0));
    work.data = 3;
    work.message_bytes.assign(work.costs.passes.front().size(), 3e6);
    work.gradient_bytes.assign(static_cast<std::size_t>(schedule.cells()), 5e6);
    const Cluster cluster = hosts_of_8(24, 1e-5);
    const PipelineResult first = simulate(work, cluster), again = simulate(work, cluster);
    EXPECT_EQ(first.seconds, again.seconds);
    EXPECT_EQ(first.events, again.events);
  }
}

// One stage, one pass of `seconds`, copies that sum gradients.
PipelineWork copies(std::int64_t data, double bytes, double milliseconds = 0) {
  const Schedule schedule = pipeline::make_schedule(ScheduleKind::kGpipe, {});
  PipelineWork work = work_of(schedule, even_costs(schedule, milliseconds / 3, milliseconds * 2 / 3));
  work.data = data;
  work.gradient_bytes = {bytes};
  return work;
}

TEST(PipelineRun, GradientsAreSummedInTheTimeOfARing) {
  const double bytes = 1e9, latency = 1e-3;
  for (const std::int64_t ranks : {2, 3, 8}) {
    const double n = static_cast<double>(ranks), ring = 2 * (n - 1) / n * bytes / 100e9 + 2 * (n - 1) * latency;
    EXPECT_NEAR(simulate(copies(ranks, bytes), hosts_of_8(8, latency)).seconds, ring, kMillisecondRounding);
    PipelineWork sharded = copies(ranks, bytes);
    sharded.shards_optimizer = true;
    sharded.weight_bytes = {bytes / 2};
    sharded.update_seconds = {0.25};
    EXPECT_NEAR(simulate(sharded, hosts_of_8(8, latency)).seconds, 0.25 + ring / 2 + (ring / 2 + (n - 1) * latency) / 2,
                kMillisecondRounding);
  }
}

TEST(PipelineRun, AHostsPortCarriesTheRingsOfAllItsRanks) {
  // 16 copies on two hosts: one ring crosses each port once. 2 copies of 8 tensor-parallel ranks: eight rings do.
  const double bytes = 1e9;
  const Cluster cluster = hosts_of_8(16);
  EXPECT_NEAR(simulate(copies(16, bytes), cluster).seconds, 2.0 * 15 / 16 * bytes / 10e9, kMillisecondRounding);
  PipelineWork wide = copies(2, bytes);
  wide.tensor = 8;
  const PipelineResult result = simulate(wide, cluster);
  EXPECT_NEAR(result.seconds, 8 * bytes / 10e9, kMillisecondRounding);
  ASSERT_EQ(result.links.size(), 2U);  // out of and into the first copy's host
  EXPECT_NEAR(result.links[0].bytes, 8 * bytes, 1);
  EXPECT_NEAR(result.links[0].busy, result.seconds, kMillisecondRounding);
}

TEST(PipelineRun, SumsFlowBesideThePassThatIsNotDoneYet) {
  // With 4 pieces, each of 30 ms of backward and a sum of 10 ms, only the last sum is not hidden; with one, its whole
  // sum.
  const double bytes = 4 * 10e-3 * 100e9;  // two copies: 2 (n-1)/n = 1
  PipelineWork work = copies(2, bytes, 180);
  EXPECT_NEAR(simulate(work, hosts_of_8(8)).seconds, 0.180 + 0.040, kMillisecondRounding);
  work.gradient_pieces = 4;
  EXPECT_NEAR(simulate(work, hosts_of_8(8)).seconds, 0.180 + 0.010, kMillisecondRounding);
  work.gradient_pieces = 0;
  EXPECT_NEAR(simulate(work, hosts_of_8(8)).seconds, 0.180 + 0.040, kMillisecondRounding);
}

TEST(PipelineRun, MessagesOfAllTensorRanksShareTheirHostsPort) {
  // Two stages of 8 ranks, a host each: 8 messages of 1e7 bytes cross a port of 10 GB/s in 8 ms; forward and backward
  // have a direction each.
  const Schedule schedule = pipeline::make_schedule(ScheduleKind::kGpipe, {.stages = 2});
  PipelineWork work = work_of(schedule, even_costs(schedule, 3, 6));
  work.tensor = 8;
  work.message_bytes = {1e7};
  const PipelineResult result = simulate(work, hosts_of_8(16), true);
  EXPECT_NEAR(1e3 * result.seconds, 2 * (3 + 6) + 2 * 8, kMillisecondRounding);
  EXPECT_EQ(std::ranges::count_if(result.spans, [](const Span& span) { return span.kind == Span::Kind::kOutput; }), 1);
  double sent = 0;
  for (const LinkUse& link : result.links) sent += link.bytes;
  EXPECT_NEAR(sent, 2 * 2 * 8e7, 1);  // out of one host and into the other, there and back
}

TEST(PipelineRun, WhereCopiesLieAcrossHostsTheyShareTheirPorts) {
  // Copies of 12 stages on hosts of 8: the second one has stages 0 .. 3 in the first one's second host, and its
  // messages from stage 3 to stage 4 leave by the same port at which nothing of the first copy leaves. Its last stage's
  // hosts receive nothing: only that one message is in the first copy's way, out of host 1.
  const Schedule schedule = pipeline::make_schedule(ScheduleKind::kGpipe, {.stages = 12});
  PipelineWork work = work_of(schedule, even_costs(schedule, 1, 1));
  work.data = 2;
  work.message_bytes = {1e7};
  const PipelineResult result = simulate(work, hosts_of_8(24));
  const auto bytes_of = [&](const std::string& name) {
    for (const LinkUse& link : result.links) {
      if (link.name == name) return link.bytes;
    }
    return 0.0;
  };
  EXPECT_NEAR(bytes_of("network 0 out"), 1e7, 1);
  EXPECT_NEAR(bytes_of("network 1 in"), 2e7, 1);   // outputs of stage 7, and gradients for stage 3 of the second copy
  EXPECT_NEAR(bytes_of("network 1 out"), 2e7, 1);  // gradients of stage 8, and outputs of the second copy's stage 3
}

TEST(PipelineRun, InAVEachMessageTakesTheLinksToTheStageThatItGoesTo) {
  // Stages 0 and 1 are on the first host, 2 and 3 on the second. Down the V and up again, each micro-batch has an
  // output and a gradient from stage 1 to stage 2, and both from stage 2 to stage 1; the other messages stay within a
  // host.
  const int micro_batches = 8, tensor = 4;
  const double bytes = 1e6, crossing = 2.0 * micro_batches * tensor * bytes;
  for (const ScheduleKind kind : {ScheduleKind::kVHalf, ScheduleKind::kVZeroBubble}) {
    const Schedule schedule =
        pipeline::make_schedule(kind, {.stages = 4, .micro_batches = micro_batches, .virtual_stages = 2});
    PipelineWork work = work_of(schedule, even_costs(schedule, 1, 2));
    work.tensor = tensor;
    work.message_bytes.assign(work.costs.passes.front().size(), bytes);
    int ports = 0;
    for (const LinkUse& link : simulate(work, hosts_of_8(16)).links) {
      if (!link.name.starts_with("network")) continue;
      EXPECT_NEAR(link.bytes, crossing, 1) << name_of(kind) << " " << link.name;
      ++ports;
    }
    EXPECT_EQ(ports, 4) << "out of and into both hosts";
  }
}

TEST(PipelineRun, TheTiedEmbeddingIsSummedWhenAllElseIs) {
  const Schedule schedule = pipeline::make_schedule(ScheduleKind::kGpipe, {.stages = 4});
  PipelineWork work = work_of(schedule, even_costs(schedule, 1, 2));
  const Cluster cluster = hosts_of_8(8);
  const double alone = simulate(work, cluster).seconds;
  work.tied_bytes = 1e9;
  work.update_seconds = {0.1, 0.2, 0.3, 0.1};
  const PipelineResult result = simulate(work, cluster);
  EXPECT_NEAR(result.seconds, alone + 1e9 / 100e9 + 0.3, kMillisecondRounding);
  EXPECT_NEAR(result.pipeline_seconds, alone, kMillisecondRounding);
}

TEST(PipelineRun, AFastEnoughLinkLeavesTheClosedFormAndASlowerOneNeverHelps) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomSequence random(RandomStream{.seed = seed});
    const ScheduleKind kind = kAllKinds[random.below(kAllKinds.size())];
    const Schedule schedule = pipeline::make_schedule(kind, random_size(random, kind));
    PipelineWork work = work_of(schedule, even_costs(schedule, 1, 2));
    Cluster cluster = hosts_of_8(8, 1e-6);
    double before = 0;
    for (const double bytes : {0.0, 1e3, 1e6, 1e7, 1e8}) {
      work.message_bytes.assign(work.costs.passes.front().size(), bytes);
      const double seconds = simulate(work, cluster).seconds;
      ASSERT_GE(seconds, before - kMillisecondRounding) << seed;
      before = seconds;
    }
  }
}

TEST(PipelineRun, EventsGrowAsActions) {
  const auto events = [](int stages, int micro_batches) {
    const Schedule schedule =
        pipeline::make_schedule(ScheduleKind::k1F1B, {.stages = stages, .micro_batches = micro_batches});
    PipelineWork work = work_of(schedule, even_costs(schedule, 1, 2));
    work.message_bytes = {1e6};
    work.tensor = 8;
    const double actions = 2.0 * stages * micro_batches;
    return static_cast<double>(simulate(work, hosts_of_8(8 * stages, 1e-6)).events) / actions;
  };
  const double small = events(4, 32);
  EXPECT_NEAR(events(4, 1024), small, 0.1 * small);
  EXPECT_NEAR(events(64, 128), small, 0.4 * small);  // of 4 stages a quarter sends nothing
}

// Weights that two copies share out, of a cell in four pieces: by hand.
PipelineWork shared_weights(int micro_batches, double bytes) {
  const Schedule schedule =
      pipeline::make_schedule(ScheduleKind::kGpipe, {.stages = 1, .micro_batches = micro_batches});
  PipelineWork work = work_of(schedule, even_costs(schedule, 4, 8));
  work.data = 2;
  work.gradient_pieces = 4;
  work.gradient_bytes = work.weight_bytes = {bytes};
  work.shards_optimizer = work.shards_gradients = work.shards_weights = true;
  return work;
}

TEST(PipelineRun, GathersOfSharedWeightsRunBesidePassesButTheFirstAndTheLastSum) {
  // A piece of 2 MB takes 1 MB of each port, 10 us of 1 ms and 2 ms: all but the first gather and the last sum hide.
  const double seconds = simulate(shared_weights(3, 8e6), hosts_of_8(2)).seconds;
  EXPECT_NEAR(seconds, 3 * 12e-3 + 2 * 10e-6, 1e-9);
}

TEST(PipelineRun, OverSlowLinksSharedWeightsTakeTheLinksTime) {
  // A piece of 2 GB takes 10 ms, ten times its forward. Of each micro-batch weights go round twice, gradients once.
  const double gathers = 3 * 2 * 4 * 10e-3, sums = 3 * 4 * 10e-3, passes = 3 * 12e-3;
  const PipelineResult result = simulate(shared_weights(3, 8e9), hosts_of_8(2));
  EXPECT_GE(result.seconds, gathers + sums);
  EXPECT_LE(result.seconds, gathers + sums + passes);
  const StageUse& use = result.stages.front();
  EXPECT_NEAR(use.busy, passes, 1e-9);  // waiting for weights is no work
  EXPECT_NEAR(use.bubble_share, 1 - passes / result.pipeline_seconds, 1e-9);
  EXPECT_NEAR(result.bubble_share(), use.bubble_share, 1e-9);
  EXPECT_GE(use.sum_seconds, gathers + sums);
}

TEST(PipelineRun, SharedGradientsHaveWeightsToGather) {
  PipelineWork work = shared_weights(2, 8e9);
  work.weight_bytes.clear();
  EXPECT_THROW(simulate(work, hosts_of_8(2)), InternalError);
}

TEST(PipelineRun, WeightsThatStayThroughTheBackwardAreGatheredOnce) {
  PipelineWork work = shared_weights(2, 8e9);
  const double again = simulate(work, hosts_of_8(2)).seconds;
  work.shards_weights = false;
  EXPECT_LT(simulate(work, hosts_of_8(2)).seconds, again);
  const auto bytes = [&] { return simulate(work, hosts_of_8(2)).links.front().bytes; };
  const double once = bytes();
  work.shards_weights = true;
  EXPECT_NEAR(bytes() - once, 2 * 4e9, 1);  // half of the weights of each of two micro-batches
}

TEST(PipelineRun, WeightGradientsOfTheirOwnGatherNoWeights) {
  PipelineWork work = shared_weights(2, 8e9);
  const auto bytes = [&] { return simulate(work, hosts_of_8(2)).links.front().bytes; };
  const double together = bytes();
  std::vector<pipeline::Action> actions;
  for (const pipeline::Action& action : work.schedule.actions.front()) {
    actions.push_back(action);
    if (action.pass != pipeline::Pass::kBackward) continue;
    actions.back().pass = pipeline::Pass::kBackwardInput;
    actions.push_back(action);
    actions.back().pass = pipeline::Pass::kBackwardWeight;
  }
  work.schedule.actions.front() = actions;
  EXPECT_NEAR(bytes(), together, 1);
}

TEST(PipelineRun, WorkThatDoesNotFitIsOurBug) {
  PipelineWork work = copies(16, 1);
  EXPECT_THROW(simulate(work, hosts_of_8(8)), InternalError);
  work.data = 2;
  work.gradient_bytes = {1, 2};
  EXPECT_THROW(simulate(work, hosts_of_8(8)), InternalError);
}

}  // namespace
}  // namespace teratron::testing
