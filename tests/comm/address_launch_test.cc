// Environments that are a launch by address, and the messages where one is not complete.
#include "comm/control/address_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "comm/control/membership.h"

namespace teratron::testing {
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

TEST(AddressLaunch, ListsMissingAndWrongVariables) {
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

const std::string kSecret = "0123456789abcdef0123456789abcdef";

MeetingPoint meeting(const Variables& variables, const std::string& bind = "") {
  return meeting_point_of(find(variables).value(), bind);
}

std::string refusal(const Variables& variables, const std::string& bind = "") {
  try {
    (void)meeting(variables, bind);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(AddressLaunch, WithoutASecretProcessesMeetOnOneHostAlone) {
  const Variables here = with(kComplete, "MASTER_ADDR", "127.0.0.1");
  EXPECT_FALSE(meeting(here).is_drawn);
  EXPECT_EQ(meeting(here).bind, "127.0.0.1");
  EXPECT_EQ(meeting(with(kComplete, "MASTER_ADDR", "localhost")).bind, "127.0.0.1");
  EXPECT_EQ(meeting(here, "127.0.0.3").bind, "127.0.0.3");
  for (const char* const far : {"192.0.2.7", "no-such-host.invalid"}) {
    EXPECT_THAT(refusal(with(kComplete, "MASTER_ADDR", far)),
                AllOf(HasSubstr("MASTER_ADDR is " + std::string(far)), HasSubstr("export TERATRON_SECRET=$(od "),
                      HasSubstr("TERATRON_SECRET_FILE"), HasSubstr("MASTER_ADDR=127.0.0.1")));
  }
  EXPECT_THAT(refusal(here, "0.0.0.0"), HasSubstr("--bind is 0.0.0.0"));
  // torchrun on one host gives the host's own address.
  const MeetingPoint one_host = meeting(with(with(kComplete, "MASTER_ADDR", "192.0.2.7"), "LOCAL_WORLD_SIZE", "4"));
  EXPECT_EQ(one_host.hosts, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(one_host.bind, "127.0.0.1");
  EXPECT_NE(refusal(with(with(kComplete, "MASTER_ADDR", "192.0.2.7"), "LOCAL_WORLD_SIZE", "2")), "");
}

TEST(AddressLaunch, WithASecretTheyMeetAnywhere) {
  const Variables far = with(with(kComplete, "MASTER_ADDR", "192.0.2.7"), "TERATRON_SECRET", kSecret);
  const MeetingPoint point = meeting(far);
  EXPECT_TRUE(point.is_drawn);
  EXPECT_EQ(point.bind, "");
  EXPECT_THAT(point.secret, HasSubstr(kSecret));
  EXPECT_EQ(meeting(far, "192.0.2.7").bind, "192.0.2.7");
  EXPECT_EQ(meeting(with(far, "MASTER_ADDR", "127.0.0.1")).bind, "127.0.0.1");
  EXPECT_NE(meeting(with(far, "TERATRON_SECRET", kSecret + "x")).secret, point.secret);
  EXPECT_NE(meeting(with(far, "MASTER_PORT", "29501")).secret, point.secret);  // another job of the same secret
}

TEST(AddressLaunch, TheSecretMayLieInAFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "secret", kSecret + "\n");
  EXPECT_EQ(find(with(kComplete, "TERATRON_SECRET_FILE", (folder / "secret").string()))->secret, kSecret);
  write_file_atomically(folder / "secret", "");
  EXPECT_THAT(error_of(with(kComplete, "TERATRON_SECRET_FILE", (folder / "secret").string())),
              HasSubstr("secret' (TERATRON_SECRET_FILE) has 0 characters, and 16 are needed"));
  EXPECT_THAT(error_of(with(kComplete, "TERATRON_SECRET_FILE", (folder / "none").string())), HasSubstr("none'"));
  EXPECT_THAT(error_of(with(kComplete, "TERATRON_SECRET", "password")), HasSubstr("has 8 characters"));
}

}  // namespace
}  // namespace teratron::testing
