#include "cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "base/variable.h"
#include "cluster/presets.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::string random_name(std::mt19937_64& random) {
  static constexpr std::string_view kLetters = "abcXYZ 0\"\\'\n\t#=[]%é'''";  // with halves of é, which are no UTF-8
  std::string name = random() % 8 == 0 ? "bytes:" : "n";
  for (std::uint64_t i = random() % 8; i > 0; --i) name += kLetters[random() % kLetters.size()];
  return name;
}

double random_number(std::mt19937_64& random) {
  return std::ldexp(std::uniform_real_distribution(0.5, 1.0)(random), static_cast<int>(random() % 80) - 30);
}

Cluster random_cluster(std::mt19937_64& random) {
  Cluster cluster{.name = random_name(random),
                  .device = {random_name(random), random_number(random), random_number(random), random_number(random),
                             random_number(random)}};
  cluster.device.backend = std::array{"", "cpu", "cuda"}[random() % 3];
  for (std::uint64_t level = random() % 4; level > 0; --level) {
    cluster.devices *= 2 + static_cast<std::int64_t>(random() % 15);
    cluster.links.push_back({.name = random_name(random),
                             .devices = cluster.devices,
                             .bandwidth = random_number(random),
                             .is_shared = !cluster.links.empty() && random() % 2 == 0,
                             .latency = random() % 4 == 0 ? 0 : random_number(random),
                             .from = random_name(random)});
  }
  for (std::uint64_t i = random() % 4; i > 0; --i) {
    cluster.constants.push_back({fmt::format("c{}", i), random_number(random) - 1, random_name(random)});
  }
  return cluster;
}

TEST(ClusterFile, RandomClustersReadBackExactly) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const Cluster cluster = random_cluster(random);
    ASSERT_TRUE(cluster.faults().empty()) << "seed " << seed << ": " << cluster.faults().texts().front();
    EXPECT_EQ(cluster_from_toml(to_toml(cluster), "c.toml"), cluster) << "seed " << seed << "\n" << to_toml(cluster);
  }
}

TEST(ClusterFile, AllFaultsAreListedAtOnceWithTheirLines) {
  const std::string text = R"(name = "a"
devices = "four"
speed = 3
[device]
name = "d"
memory = 1
peak_16 = true
peak_32 = 1
memory_bandwith = 1
[[link]]
name = "l"
devices = 4
bandwidth = 1
shared = 1
)";
  EXPECT_THAT([&] { cluster_from_toml(text, "c.toml"); },
              ThrowsMessage<UserError>(AllOf(
                  HasSubstr("'devices' must be a whole number (c.toml:2)"), HasSubstr("unknown key 'speed' (c.toml:3)"),
                  HasSubstr("'peak_16' in [device] must be a number (c.toml:7)"),
                  HasSubstr("'memory_bandwidth' is missing in [device]"),
                  HasSubstr("unknown key 'memory_bandwith' in [device] (c.toml:9); did you mean 'memory_bandwidth'?"),
                  HasSubstr("'shared' in [[link]] 1 must be true or false (c.toml:14)"),
                  HasSubstr("'latency' is missing in [[link]] 1"))));
  EXPECT_THAT([] { cluster_from_toml("name = [", "c.toml"); },
              ThrowsMessage<UserError>(HasSubstr("c.toml:1: not valid TOML")));
  EXPECT_THAT([] { cluster_from_toml("link = 3", "c.toml"); }, ThrowsMessage<UserError>(HasSubstr("[[link]]")));
}

TEST(ClusterFile, ValuesThatDoNotFitOneAnotherAreListedAtOnce) {
  Cluster cluster = find_cluster("dgx-a100", 64);
  cluster.devices = 63;
  cluster.device.memory = -1;
  cluster.device.backend = "gpu";
  cluster.links[0].is_shared = true;
  cluster.links[1].devices = 60;
  cluster.links[1].bandwidth = 0;
  cluster.links[1].latency = -1e-6;
  cluster.constants = {{"a", 1, ""}, {"a", 2, ""}};
  EXPECT_THAT(
      [&] { cluster_from_toml(to_toml(cluster), "c.toml"); },
      ThrowsMessage<UserError>(AllOf(
          HasSubstr("memory of the device is -1"), HasSubstr("backend of the device is 'gpu'; it must be cpu or cuda"),
          HasSubstr("'shared' must be false"), HasSubstr("joins 60 devices; it must be a multiple of 8"),
          HasSubstr("bandwidth of link 2"), HasSubstr("latency of link 2"),
          HasSubstr("devices is 63, but the links join 60"), HasSubstr("constant 'a' is there twice"))));
}

// With which times would be infinite, or bytes no whole numbers.
TEST(ClusterFile, ValuesThatNoMachineHasAreRefused) {
  const auto refusal = [](double Device::*of_device, double LinkLevel::*of_link, double value) {
    Cluster cluster = find_cluster("dgx-a100", 64);
    if (of_device != nullptr) cluster.device.*of_device = value;
    if (of_link != nullptr) cluster.links[1].*of_link = value;
    return message_of<UserError>([&] { cluster_from_toml(to_toml(cluster), "c.toml"); });
  };
  EXPECT_THAT(refusal(&Device::memory_bandwidth, nullptr, 1e-300),
              HasSubstr("memory_bandwidth of the device is 1e-300"));
  EXPECT_THAT(refusal(&Device::memory, nullptr, 1e19), HasSubstr("to 1e+18"));
  EXPECT_THAT(refusal(&Device::watts, nullptr, 1e300), HasSubstr("watts of the device"));
  EXPECT_THAT(refusal(nullptr, &LinkLevel::bandwidth, 1e-300), HasSubstr("bandwidth of link 2"));
  EXPECT_THAT(refusal(nullptr, &LinkLevel::latency, 1e300), HasSubstr("latency of link 2"));
  Cluster endless = find_cluster("dgx-a100", 64);
  endless.devices = endless.links[1].devices = 1'000'000'000;
  EXPECT_THAT([&] { cluster_from_toml(to_toml(endless), "c.toml"); },
              ThrowsMessage<UserError>(HasSubstr("devices is 1000000000; the most is 65536")));
}

TEST(ClusterFile, FaultsShowNoControlCharactersAndOnlyTheBeginningOfLongTexts) {
  const std::string rest(5000, 'k');
  const auto is_readable = AllOf(HasSubstr("\\x1b]0;kkk"), HasSubstr("(5004 bytes)"), Not(HasSubstr("\x1b")));
  const std::string file = fmt::format("\"\\u001b]0;{}\" = 1", rest);
  EXPECT_THAT(message_of<UserError>([&] { cluster_from_toml(file, "c.toml"); }), is_readable);
  EXPECT_THAT(message_of<UserError>([&] { find_cluster("\x1b]0;" + rest); }), is_readable);
  Cluster cluster = find_cluster("dgx-a100", 8);
  cluster.links[0].name = "\x1b]0;" + rest;
  cluster.links[0].bandwidth = 0;
  EXPECT_THAT(message_of<UserError>([&] { cluster_from_toml(to_toml(cluster), "c.toml"); }), is_readable);
}

TEST(ClusterFile, UnknownNamesSayWhichClustersThereAre) {
  EXPECT_THAT([] { find_cluster("dgx-9"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'dgx-9'"), HasSubstr("dgx-2h"), HasSubstr("h200"))));
}

TEST(ClusterFile, OfOneHostHasNoMoreDevicesThanTheHost) {
  const TemporaryFolder folder;
  const std::string file = (folder / "box.toml").string();
  Cluster box = find_cluster("l40s", 8);
  box.name = "box";
  write_file_atomically(file, to_toml(box));
  EXPECT_EQ(find_cluster(file, 4).devices, 4);
  EXPECT_THAT([&] { find_cluster(file, 64); },
              ThrowsMessage<UserError>(HasSubstr("'box' is one host of 8 devices, not of 64")));
}

TEST(ClusterFile, OfThisMachineSaysHowToMeasureMoreDevices) {
  const TemporaryFolder folder;
  const Variable cache("XDG_CACHE_HOME");
  cache.set(folder.path().c_str());
  make_folders(this_machine_file().parent_path());
  for (const std::int64_t devices : {1, 2}) {
    write_file_atomically(this_machine_file(), to_toml(find_cluster("l40s", devices)));
    EXPECT_EQ(find_cluster(std::string(kThisMachine), devices).devices, devices);
    EXPECT_THAT([] { find_cluster(std::string(kThisMachine), 4); },
                ThrowsMessage<UserError>(HasSubstr("teratron profile --cluster this-machine --dp 4")));
  }
}

TEST(ClusterPresets, AreValidOfAnySize) {
  for (const std::string_view name : cluster_preset_names()) {
    const bool is_host = find_cluster_preset(name, 8)->links.size() == 1 && find_cluster_preset(name)->devices == 1;
    for (const std::int64_t devices : {0, 1, 2, 8, 16, 64, 4096}) {
      if (is_host && devices > 8) continue;
      const auto cluster = find_cluster_preset(name, devices);
      ASSERT_TRUE(cluster) << name;
      EXPECT_TRUE(cluster->faults().empty()) << name << devices << cluster->faults().texts().front();
      EXPECT_EQ(cluster_from_toml(to_toml(*cluster), "c.toml"), *cluster);
      EXPECT_TRUE(devices == 0 || cluster->devices == devices);
    }
  }
  EXPECT_FALSE(find_cluster_preset("dgx-9"));
}

TEST(ClusterPresets, WithoutANetworkHaveNoMoreDevicesThanAHost) {
  for (const char* name : {"rtx-4090", "l40s"}) {
    EXPECT_EQ(find_cluster(name, 8).devices, 8);
    EXPECT_THAT([&] { find_cluster(name, 9); },
                ThrowsMessage<UserError>(AllOf(HasSubstr(name), HasSubstr("is one host of 8 devices"))));
  }
}

TEST(Cluster, ResizedKeepsTheInnerLevelsAndRefusesPartlyEmptyHosts) {
  const Cluster hosts = find_cluster("p3.16xlarge", 64);
  EXPECT_EQ(hosts.links.size(), 2U);
  EXPECT_EQ(hosts.resized(4).links.size(), 1U);
  EXPECT_EQ(hosts.resized(4).links[0].devices, 4);
  EXPECT_EQ(hosts.resized(1).links.size(), 0U);
  EXPECT_EQ(hosts.resized(128).links[1].devices, 128);
  EXPECT_THAT([&] { hosts.resized(12); }, ThrowsMessage<UserError>(HasSubstr("take 8 or 16")));
  EXPECT_THAT([&] { hosts.resized(0); }, ThrowsMessage<UserError>(Not(HasSubstr("take"))));
  EXPECT_THAT([&] { hosts.resized(1).resized(8); }, ThrowsMessage<UserError>(HasSubstr("without links")));
}

TEST(Cluster, LevelsBetweenDevices) {
  const Cluster hosts = find_cluster("dgx-a100", 64);
  EXPECT_EQ(hosts.level_between(0, 7), 0U);
  EXPECT_EQ(hosts.level_between(7, 8), 1U);
  EXPECT_EQ(hosts.devices_of_port(0), 1);
  EXPECT_EQ(hosts.devices_of_port(1), 8);
}

}  // namespace
}  // namespace teratron::testing
