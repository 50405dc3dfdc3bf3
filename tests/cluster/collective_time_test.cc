#include "cluster/collective_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/presets.h"

namespace teratron::testing {
namespace {

// Hosts of 4 devices with 100 bytes a second each and direction, joined by ports of 40; two such racks by ports of 20.
Cluster small_cluster() {
  return {.name = "small",
          .devices = 32,
          .device = {"d", 1, 1, 1, 1},
          .links = {{.name = "in", .devices = 4, .bandwidth = 100, .latency = 0.25},
                    {.name = "host", .devices = 16, .bandwidth = 40, .is_shared = true, .latency = 0.5},
                    {.name = "rack", .devices = 32, .bandwidth = 20, .is_shared = true, .latency = 1}}};
}

// What a step of a ring puts on each port, counted message by message: every rank of every group sends a piece to the
// next of its ring. The step lasts as long as the busiest port.
double counted_all_reduce(const Cluster& cluster, const CollectiveGroup& group, double bytes) {
  std::vector<std::vector<double>> sent(cluster.links.size(),
                                        std::vector<double>(static_cast<std::size_t>(cluster.devices)));
  double latency = 0;
  const std::int64_t together = group.size == 1 ? 0 : group.stride;
  for (std::int64_t other = 0; other < together; ++other) {
    const std::int64_t base = group.first / group.stride * group.stride + other;
    for (std::int64_t i = 0; i < group.size; ++i) {
      const std::int64_t from = base + i * group.stride, to = base + (i + 1) % group.size * group.stride;
      const std::size_t level = cluster.level_between(from, to);
      latency = std::max(latency, cluster.links[level].latency);
      for (std::size_t port = 0; port <= level; ++port) {
        if (port < level && port > 0) continue;  // a message to outside leaves by the device's and the outer ports
        const std::int64_t devices = cluster.devices_of_port(port);
        sent[port][static_cast<std::size_t>(from / devices)] += bytes / static_cast<double>(group.size);
      }
    }
  }
  double step = 0;
  for (std::size_t level = 0; level < sent.size(); ++level) {
    for (const double on_port : sent[level]) step = std::max(step, on_port / cluster.links[level].bandwidth);
  }
  return 2 * static_cast<double>(group.size - 1) * (step + latency);
}

TEST(CollectiveTime, RingsTakeTheirClosedFormInAHost) {
  const Cluster cluster = small_cluster();
  // 2 (n - 1) / n S / BW + 2 (n - 1) latency
  EXPECT_DOUBLE_EQ(all_reduce_seconds(cluster, {.size = 4}, 800), 2 * 3 / 4.0 * 800 / 100 + 2 * 3 * 0.25);
  EXPECT_DOUBLE_EQ(all_gather_seconds(cluster, {.size = 4}, 800), 3 / 4.0 * 800 / 100 + 3 * 0.25);
  EXPECT_DOUBLE_EQ(reduce_scatter_seconds(cluster, {.size = 2, .stride = 2}, 800), 1 / 2.0 * 800 / 100 + 0.25);
  EXPECT_EQ(all_reduce_seconds(cluster, {.first = 3}, 800), 0);
}

TEST(CollectiveTime, GroupsThatLieBetweenOneAnotherShareAPort) {
  const Cluster cluster = small_cluster();
  EXPECT_DOUBLE_EQ(ring_bandwidth(cluster, {.size = 16}), 40);              // one ring
  EXPECT_DOUBLE_EQ(ring_bandwidth(cluster, {.size = 8, .stride = 2}), 20);  // two through each host's port
  EXPECT_DOUBLE_EQ(ring_bandwidth(cluster, {.size = 4, .stride = 4}), 10);  // four
  EXPECT_DOUBLE_EQ(ring_bandwidth(cluster, {.size = 2, .stride = 8}), 10);  // not more than a host has devices
  EXPECT_DOUBLE_EQ(ring_bandwidth(cluster, {.size = 2, .stride = 16}), 20.0 / 16);
}

TEST(CollectiveTime, AgreesWithMessagesCountedPortByPort) {
  const Cluster cluster = small_cluster();
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const std::int64_t stride = std::int64_t{1} << (random() % 5);
    const std::int64_t size = std::int64_t{1} << (random() % 3);
    const std::int64_t groups = 32 / (stride * size);
    if (groups == 0) continue;
    const std::int64_t first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(groups)) * stride * size;
    const CollectiveGroup group{first, size, stride};
    const double bytes = std::uniform_real_distribution(1.0, 1e4)(random);
    EXPECT_NEAR(all_reduce_seconds(cluster, group, bytes), counted_all_reduce(cluster, group, bytes), 1e-9 * bytes)
        << "seed " << seed << ": first " << first << " size " << size << " stride " << stride;
  }
}

TEST(CollectiveTime, MessagesTakeTheLinkBetweenTheTwo) {
  const Cluster cluster = small_cluster();
  EXPECT_DOUBLE_EQ(message_seconds(cluster, 1, 2, 200), 0.25 + 2);
  EXPECT_DOUBLE_EQ(message_seconds(cluster, 3, 4, 200), 0.5 + 5);
  EXPECT_DOUBLE_EQ(message_seconds(cluster, 15, 16, 200), 1 + 10);
  EXPECT_EQ(message_seconds(cluster, 5, 5, 200), 0);
}

// NCCL's all-reduce on one host, as vTrain's authors measured it (VIA-Research/vTrain at f8dda8473, trace/): eight
// ranks of presets take from 6 % longer to 24 % less, what one slope and one latency of a step can say; two and four of
// A100 take up to 45 % less (docs/plan.md).
TEST(CollectiveTime, EightRanksOfAPresetTakeWhatNcclTookWithinAQuarter) {
  struct Measured {
    const char* cluster;
    double mebibytes, microseconds;
  };
  for (const auto& [name, mebibytes, microseconds] :
       {Measured{"dgx-a100", 4, 95.8}, Measured{"dgx-a100", 16, 232.4}, Measured{"dgx-a100", 64, 579.9},
        Measured{"dgx-a100", 256, 2162.3}, Measured{"dgx-a100", 1024, 8193}, Measured{"p3.16xlarge", 8, 237.9},
        Measured{"p3.16xlarge", 64, 911.3}, Measured{"p3.16xlarge", 1024, 13969}}) {
    const double ours = 1e6 * all_reduce_seconds(*find_cluster_preset(name, 8), {0, 8, 1}, mebibytes * 1024 * 1024);
    EXPECT_NEAR(ours / microseconds, 1, 0.25) << name << ", " << mebibytes << " MiB";
  }
}

}  // namespace
}  // namespace teratron::testing
