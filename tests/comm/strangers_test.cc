// Strangers who connect where processes meet: none joins the job, keeps a member out or ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>

#include "comm/control_planes.h"

namespace teratron::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ControlPlaneMeeting, StrangersNeitherJoinNorKeepAnybodyWaiting) {
  const int port = free_port();
  std::vector<Socket> strangers;
  const Process strange = [&] {
    const std::string teratron = "teratron", zeros(8, '\0'), long_frame = "teratron\xff\xff\xff\x7f";
    for (const std::string& text : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, 'x'),
                                    teratron, teratron + "\x40" + zeros, teratron + zeros, long_frame,
                                    teratron + std::string("\x05\0\0\0\xff\xff\xff\xff?", 9)}) {
      strangers.push_back(call(port));
      (void)::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
    strangers.front() = call(port);  // closes the first one
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), strange}), Each(IsEmpty()));
}

TEST(ControlPlaneMeeting, MoreStrangersThanThereIsRoomForKeepNobodyOut) {
  const int port = free_port();
  std::vector<Socket> strangers;
  const Process crowd = [&] {
    for (int n = 0; n < 300; ++n) strangers.push_back(call(port));
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), crowd}), Each(IsEmpty()));
}

// 300 at a time, and a new one for each that is put out.
// In a full room the caller that has been silent longest goes, and one that comes late stays, though it is silent too.
TEST(ControlPlaneMeeting, ALateAndSilentCallerTakesTheRoomOfTheFirstOfManyStrangers) {
  const int port = free_port();
  const Process crowd = [&] {
    std::vector<Socket> strangers;
    for (int n = 0; n < 256; ++n) strangers.push_back(call(port));
    const Socket late = call(port);
    while (!is_closed(strangers.front()) && !is_closed(late)) std::this_thread::yield();
    EXPECT_FALSE(is_closed(late));
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), crowd}), Each(IsEmpty()));
}
TEST(ControlPlaneMeeting, SilentStrangersThatComeAgainAndAgainKeepNobodyOut) {
  const int port = free_port();
  std::atomic<bool> all_have_called{false}, met{false};
  const Process crowd = [&] {
    std::vector<Socket> strangers;
    for (int n = 0; n < 300; ++n) strangers.push_back(call(port));
    all_have_called = true;
    while (!met) {
      for (Socket& stranger : strangers) {
        const auto address = resolve("127.0.0.1", static_cast<std::uint16_t>(port)).at(0);
        if (is_closed(stranger)) stranger = connect_to(address, milliseconds(100));
      }
    }
  };
  const Process member = [&] {
    while (!all_have_called) std::this_thread::yield();
    const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> end(&met, [](auto* flag) { *flag = true; });
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), member, crowd}), Each(IsEmpty()));
}

TEST(ControlPlaneMeeting, StrangersWithOtherSecretsAreReportedOnce) {
  const int port = free_port();
  const Process guess = [&] {
    for (int n = 0; n < 5; ++n) {
      Membership other = member_at(port, 1, 2);
      other.point.secret += fmt::format("{}", n);
      FrameConnection connection(call(port));
      connection.send(Hello::frame(other));
      EXPECT_EQ(answer_on(connection), Frame{"another job"});
    }
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), guess}), Each(IsEmpty()));
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("put out a connection from 127.0.0.1:"));
  EXPECT_EQ(told.find("put out a connection"), told.rfind("put out a connection")) << told;
}

// Without a secret that was drawn, anybody may have guessed it: a hello that contradicts ends its sender alone.
TEST(ControlPlaneMeeting, AContradictionFromWhoMayHaveGuessedTheSecretDoesNotEndTheJob) {
  const int port = free_port();
  const auto guessable = [&](int rank, int size) {
    Membership own = member_at(port, rank, size);
    own.point.is_drawn = false;
    return own;
  };
  const Process second = [&] {
    for (const Membership& wrong : {guessable(1, 7), guessable(5, 2), guessable(0, 2)}) {
      FrameConnection connection(call(port));
      connection.send(Hello::frame(wrong));
      EXPECT_EQ(answer_on(connection).value_or(Frame{}).at(0), "failure");
    }
    run_member(guessable(1, 2), [](ControlPlane&) {});
  };
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(run_processes({in_time(guessable(0, 2)), second}), Each(IsEmpty()));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was started with WORLD_SIZE=7"));
}

TEST(ControlPlaneMeeting, ListensAtTheAddressThatItIsGivenAlone) {
  const int port = free_port();
  Membership first = member_at(port, 0, 2), second = member_at(port, 1, 2);
  first.point.bind = "127.0.0.2";
  second.point.hosts = {"127.0.0.2"};
  const Process other = [&] {
    const Socket caller = call(port, "127.0.0.2");  // so it listens there
    EXPECT_FALSE(connect_to(resolve("127.0.0.1", static_cast<std::uint16_t>(port)).at(0), milliseconds(200)));
    run_member(second, [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(first), other}), Each(IsEmpty()));
  first.point.bind = "192.0.2.1";  // no host has it
  EXPECT_THAT(run_processes({meets(first, milliseconds(300))})[0],
              AllOf(HasSubstr("(192.0.2.1)"), HasSubstr("Cannot assign requested address")));
}

TEST(ControlPlaneMeeting, AStrangerWithoutTheSecretIsNoMember) {
  const int port = free_port();
  const Process guess_and_join = [&] {
    Membership other = member_at(port, 1, 2);
    other.point.secret = "a guess";
    FrameConnection connection(call(port));
    connection.send(Hello::frame(other));
    EXPECT_EQ(answer_on(connection), Frame{"another job"});
    run_member(member_at(port, 1, 2), [](ControlPlane&) {});
  };
  EXPECT_THAT(run_processes({in_time(member_at(port, 0, 2)), guess_and_join}), Each(IsEmpty()));
}

}  // namespace
}  // namespace teratron::testing
