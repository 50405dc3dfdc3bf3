// Tasks on streams and links, against times that follow without a simulation.
#include "simulation/event_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace teratron::testing {
namespace {

using namespace simulation;

constexpr double kRounding = 1e-9;  // of sums of a few hundred terms of order 1

const std::vector<TaskId> kNothing;

TEST(EventSimulation, AStreamRunsItsTasksInTheirOrder) {
  EventSimulation events;
  const StreamId a = events.add_stream(), b = events.add_stream();
  const TaskId first = events.compute(a, 2, kNothing);
  const TaskId other = events.compute(b, 5, kNothing);
  const std::vector<TaskId> after = {other};
  const TaskId waits = events.compute(a, 1, after);
  const TaskId last = events.compute(a, 1, kNothing);  // could start at 2, but one that waits comes first
  events.run();
  EXPECT_EQ(events.times(first).end, 2);
  EXPECT_EQ(events.times(waits).start, 5);
  EXPECT_EQ(events.times(last).start, 6);
  EXPECT_EQ(events.end(), 7);
  EXPECT_EQ(events.busy(a), 4);
}

TEST(EventSimulation, AMessageTakesItsLatencyAndThenItsBytesOverTheNarrowestLink) {
  EventSimulation events;
  const std::vector<LinkId> links = {events.add_link("wide", 100), events.add_link("narrow", 10)};
  const TaskId message = events.transfer(kNoStream, events.add_route(links), 40, 0.5, kNothing);
  events.run();
  EXPECT_DOUBLE_EQ(events.times(message).end, 4.5);
  EXPECT_DOUBLE_EQ(events.link_busy(links[0]), 4);  // not while it is under way to the link
}

TEST(EventSimulation, MessagesThatStartTogetherShareALinkEvenly) {
  for (int messages = 1; messages <= 64; messages *= 2) {
    EventSimulation events;
    const std::vector<LinkId> link = {events.add_link("link", 8)};
    const RouteId route = events.add_route(link);
    std::vector<TaskId> sent;
    for (int i = 0; i < messages; ++i) sent.push_back(events.transfer(kNoStream, route, 16, 0, kNothing));
    events.run();
    for (const TaskId message : sent) EXPECT_NEAR(events.times(message).end, 2 * messages, kRounding);
    EXPECT_DOUBLE_EQ(events.bytes_over(link[0]), 16.0 * messages);
    EXPECT_NEAR(events.link_busy(link[0]), 2 * messages, kRounding);
  }
}

TEST(EventSimulation, AMessageThatComesLaterTakesHalfFromThenOn) {
  // By hand: 10 bytes at 1 a second. Alone until 4, when another of 2 bytes comes; both at 1/2 until 8, when it is
  // done; the first has sent 4 + 2 and needs 4 seconds more.
  EventSimulation events;
  const std::vector<LinkId> link = {events.add_link("link", 1)};
  const RouteId route = events.add_route(link);
  const TaskId first = events.transfer(kNoStream, route, 10, 0, kNothing);
  const TaskId second = events.transfer(kNoStream, route, 2, 4, kNothing);
  events.run();
  EXPECT_NEAR(events.times(second).end, 8, kRounding);
  EXPECT_NEAR(events.times(first).end, 12, kRounding);
}

TEST(EventSimulation, RoutesShareTheLinksThatTheyHaveInCommon) {
  // Two routes over one link of 2 bytes a second, one of them over another link of 0.5 besides: it stays at 0.5, and
  // the other one has half of the common link as long as both are there.
  EventSimulation events;
  const LinkId common = events.add_link("common", 2), narrow = events.add_link("narrow", 0.5);
  const std::vector<LinkId> one = {common}, two = {common, narrow};
  const TaskId fast = events.transfer(kNoStream, events.add_route(one), 6, 0, kNothing);
  const TaskId slow = events.transfer(kNoStream, events.add_route(two), 2, 0, kNothing);
  events.run();
  EXPECT_NEAR(events.times(slow).end, 4, kRounding);      // 2 / 0.5
  EXPECT_NEAR(events.times(fast).end, 4 + 1, kRounding);  // 1 a second for 4 seconds, then 2 a second
  EXPECT_DOUBLE_EQ(events.bytes_over(common), 8);
}

// Fair shares computed anew in small steps of time, without any of the engine's ideas.
std::vector<double> ends_in_small_steps(const std::vector<double>& bandwidth,
                                        const std::vector<std::vector<LinkId>>& paths,
                                        const std::vector<double>& starts, std::vector<double> left, double step) {
  std::vector<double> ends(left.size(), -1);
  for (std::size_t done = 0, tick = 0; done < left.size(); ++tick) {
    const double now = static_cast<double>(tick) * step;
    std::vector<int> load(bandwidth.size(), 0);
    const auto flows = [&](std::size_t m) { return ends[m] < 0 && starts[m] <= now; };
    for (std::size_t m = 0; m < left.size(); ++m) {
      for (const LinkId link : paths[m]) load[static_cast<std::size_t>(link)] += flows(m) ? 1 : 0;
    }
    for (std::size_t m = 0; m < left.size(); ++m) {
      if (!flows(m)) continue;
      double rate = 1e30;
      for (const LinkId link : paths[m]) {
        const auto at = static_cast<std::size_t>(link);
        rate = std::min(rate, bandwidth[at] / load[at]);
      }
      left[m] -= rate * step;
      if (left[m] > 0) continue;
      ends[m] = now + step;
      ++done;
    }
  }
  return ends;
}

TEST(EventSimulation, RandomMessagesEndWhenSmallStepsOfTimeSay) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    RandomSequence random(RandomStream{.seed = seed});
    EventSimulation events;
    std::vector<double> bandwidth, starts, bytes;
    for (int i = 0; i < 4; ++i) bandwidth.push_back(1 + random.uniform());
    for (const double each : bandwidth) events.add_link("link", each);
    std::vector<std::vector<LinkId>> paths;
    std::vector<TaskId> messages;
    for (int i = 0; i < 25; ++i) {
      std::vector<LinkId> path;
      for (LinkId link = 0; link < 4; ++link) {
        if (random.below(2) == 0) path.push_back(link);
      }
      if (path.empty()) path.push_back(0);
      paths.push_back(path);
      starts.push_back(4 * random.uniform());
      bytes.push_back(0.1 + random.uniform());
      messages.push_back(events.transfer(kNoStream, events.add_route(path), bytes.back(), starts.back(), kNothing));
    }
    events.run();
    constexpr double kStep = 4e-4;
    const std::vector<double> expected = ends_in_small_steps(bandwidth, paths, starts, bytes, kStep);
    for (std::size_t m = 0; m < messages.size(); ++m) {
      // Each of the 25 messages' starts and ends is up to a step late there, and each shifts the others by as much.
      ASSERT_NEAR(events.times(messages[m]).end, expected[m], 50 * kStep) << m;
    }
  }
}

TEST(EventSimulation, MessagesCrossEveryLinkOfTheirRoute) {
  RandomSequence random(RandomStream{.seed = 7});
  EventSimulation events;
  std::vector<double> expected(5, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) events.add_link("link", 1 + random.uniform());
  const StreamId stream = events.add_stream();
  std::vector<TaskId> last;
  for (int i = 0; i < 300; ++i) {
    std::vector<LinkId> path;
    for (LinkId link = 0; link < 5; ++link) {
      if (random.below(3) == 0) path.push_back(link);
    }
    const double bytes = random.uniform();
    for (const LinkId link : path) expected[static_cast<std::size_t>(link)] += bytes;
    const bool is_in_line = random.below(2) == 0;
    const TaskId sent =
        events.transfer(is_in_line ? stream : kNoStream, events.add_route(path), bytes, random.uniform(), last);
    if (random.below(4) == 0) last = {sent};
  }
  events.run();
  for (LinkId link = 0; link < 5; ++link) {
    EXPECT_NEAR(events.bytes_over(link), expected[static_cast<std::size_t>(link)], kRounding);
  }
}

// Stages that compute and send to the next one, beside one another over shared links.
std::int64_t events_of(int stages, int rounds) {
  EventSimulation events;
  const std::vector<LinkId> shared = {events.add_link("shared", 1)};
  std::vector<StreamId> streams;
  std::vector<RouteId> routes;
  for (int s = 0; s < stages; ++s) {
    streams.push_back(events.add_stream());
    const std::vector<LinkId> own = {events.add_link("own", 3)};
    routes.push_back(s % 8 == 7 ? events.add_route(shared) : events.add_route(own));
  }
  for (int round = 0; round < rounds; ++round) {
    std::vector<TaskId> arrived;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const TaskId pass = events.compute(streams[s], 1, arrived);
      arrived = {events.transfer(kNoStream, routes[s], 0.5, 0.01, {&pass, 1})};
    }
  }
  events.run();
  return events.events();
}

TEST(EventSimulation, EventsGrowAsTasks) {
  const double few = static_cast<double>(events_of(16, 50)), more = static_cast<double>(events_of(16, 100));
  const double many = static_cast<double>(events_of(16, 800)), wide = static_cast<double>(events_of(128, 100));
  EXPECT_NEAR(more / few, 2, 0.1);
  EXPECT_NEAR(many / more, 8, 0.4);
  EXPECT_NEAR(wide / more, 8, 0.8);
}

TEST(EventSimulation, TasksThatDoNotStandYetAreOurBug) {
  EventSimulation events;
  const std::vector<TaskId> after = {0};
  EXPECT_THROW(events.compute(kNoStream, 1, after), InternalError);  // itself
  EXPECT_THROW(events.compute(kNoStream, -1, kNothing), InternalError);
  EXPECT_THROW(events.transfer(kNoStream, 0, 1, 0, kNothing), InternalError);
}

}  // namespace
}  // namespace teratron::testing
