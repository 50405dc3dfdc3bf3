// Which environments are a launch by address, and what is told where one is not complete.
#include "comm/control/address_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Variables = std::map<std::string, std::string>;

std::optional<AddressLaunch> find(const Variables& variables) {
  return find_address_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_of(const Variables& variables) {
  try {
    (void)find(variables);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

const Variables kComplete = {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(AddressLaunch, AllFourVariablesAreOne) {
  const auto launch = find(kComplete);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->world_size, 4);
  EXPECT_EQ(launch->address, "node0");
  EXPECT_EQ(launch->ports, std::vector<std::uint16_t>{29500});
  EXPECT_EQ(launch->launcher, "the job at node0:29500");
}

TEST(AddressLaunch, VariablesOfOtherToolsAndWorldsOfOneAreNone) {
  EXPECT_FALSE(find({}));
  EXPECT_FALSE(find({{"RANK", "3"}}));
  EXPECT_FALSE(find({{"RANK", "captain"}}));
  EXPECT_FALSE(find({{"WORLD_SIZE", "4"}}));
  EXPECT_FALSE(find({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}));
  EXPECT_FALSE(find({{"RANK", ""}, {"WORLD_SIZE", ""}, {"MASTER_ADDR", "node0"}}));
  EXPECT_FALSE(find(with(with(kComplete, "WORLD_SIZE", "1"), "RANK", "0")));
  EXPECT_FALSE(find({{"WORLD_SIZE", "1"}, {"RANK", "0"}}));
}

TEST(AddressLaunch, WhatIsMissingOrWrongIsListed) {
  EXPECT_THAT(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("MASTER_ADDR is not set"), HasSubstr("MASTER_PORT is not set"),
                    HasSubstr("unset RANK and WORLD_SIZE for one process"), Not(HasSubstr("\n  RANK"))));
  EXPECT_THAT(error_of({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}),
              AllOf(HasSubstr("\n  RANK is not set"), Not(HasSubstr("\n  MASTER_PORT"))));
  EXPECT_THAT(error_of({{"RANK", "0"}, {"MASTER_ADDR", "node0"}}),
              AllOf(HasSubstr("\n  WORLD_SIZE is not set"), HasSubstr("\n  MASTER_PORT is not set")));
  EXPECT_THAT(error_of(with(kComplete, "RANK", "4")), HasSubstr("RANK is \"4\", but has to be a number from 0 to 3"));
  EXPECT_THAT(error_of(with(kComplete, "RANK", "-1")), HasSubstr("RANK is \"-1\""));
  EXPECT_THAT(error_of(with(kComplete, "WORLD_SIZE", "four")), HasSubstr("WORLD_SIZE is \"four\""));
  EXPECT_THAT(error_of(with(kComplete, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE is \"0\""));
  EXPECT_THAT(error_of(with(kComplete, "MASTER_PORT", "29500x")), HasSubstr("MASTER_PORT is \"29500x\""));
  EXPECT_THAT(error_of(with(kComplete, "MASTER_PORT", "65536")), HasSubstr("from 1 to 65535"));
}

TEST(AddressLaunch, TorchrunHasThePortItself) {
  const Variables torchrun = with(with(kComplete, "TORCHELASTIC_RUN_ID", "none"), "TORCHELASTIC_RESTART_COUNT", "0");
  EXPECT_EQ(find(torchrun)->launcher, "torchrun");
  EXPECT_EQ(find(with(torchrun, "TORCHELASTIC_USE_AGENT_STORE", "False"))->ports, std::vector<std::uint16_t>{29500});
  const auto shared = find(with(torchrun, "TORCHELASTIC_USE_AGENT_STORE", "True"));
  EXPECT_EQ(shared->port, 29500);
  EXPECT_EQ(shared->ports.front(), 29501);
  EXPECT_GT(shared->ports.size(), 1U);
  const auto last = find(with(with(torchrun, "TORCHELASTIC_USE_AGENT_STORE", "True"), "MASTER_PORT", "65535"));
  EXPECT_EQ(last->ports.front(), 65534);
  EXPECT_NE(find(torchrun)->job, find(with(torchrun, "TORCHELASTIC_RESTART_COUNT", "1"))->job);
}

}  // namespace
}  // namespace teratron
