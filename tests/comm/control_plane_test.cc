// Meetings of processes, in any order and with strangers; the error of each if something is wrong; and their exchanges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cmath>

#include "comm/control_planes.h"

namespace teratron::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

TEST(ControlPlaneMeeting, AnyProcessMayBeLate) {
  for (int who = 0; who < 3; ++who) {
    const int port = free_port();
    std::vector<Process> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.push_back(late(milliseconds(rank == who ? 500 : 0), member_at(port, rank, 3)));
    }
    EXPECT_THAT(run_processes(processes), Each(IsEmpty()));
  }
}

TEST(ControlPlaneMeeting, NobodyListensAfterIt) {
  const int port = free_port();
  const auto errors = run_processes({[&] {
                                       run_member(member_at(port, 0, 2), [&](ControlPlane&) {
                                         EXPECT_TRUE(listen_at(static_cast<std::uint16_t>(port)));
                                       });
                                     },
                                     in_time(member_at(port, 1, 2))});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ControlPlaneMeeting, AnotherWorldSizeIsReportedToAll) {
  const int port = free_port();
  const auto errors = run_processes(
      {in_time(member_at(port, 0, 3)), in_time(member_at(port, 1, 3)), late(milliseconds(200), member_at(port, 2, 4))});
  EXPECT_THAT(errors, Each(AllOf(StartsWith("user: rank 2 on host host2 was started with WORLD_SIZE=4, and rank 0 on"),
                                 HasSubstr("with WORLD_SIZE=3; start all processes with the same number"))));
}

TEST(ControlPlaneMeeting, TheSameRankTwiceIsReportedToAllAndToThoseThatComeLater) {
  const int port = free_port();
  const auto errors = run_processes({in_time(member_at(port, 0, 3)), in_time(member_at(port, 1, 3)),
                                     in_time(member_at(port, 1, 3)), late(milliseconds(400), member_at(port, 2, 3))});
  EXPECT_THAT(errors,
              Each(StartsWith("user: two processes were started with RANK=1, on host host1 and on host host1")));
}

// The second asks for the port, again and again, for as long as it would wait for others; the first has it for longer.
TEST(ControlPlaneMeeting, ASecondFirstRankIsRefusedThePort) {
  const int port = free_port();
  const auto second = [&] {
    const Socket listens = call(port);
    meets(member_at(port, 0, 2), milliseconds(200))();
  };
  const auto errors = run_processes({meets(member_at(port, 0, 2), milliseconds(3000)), second});
  EXPECT_THAT(errors[1], AllOf(StartsWith("environment: rank 0 cannot listen at port "),
                               HasSubstr("a second process with RANK=0")));
}

TEST(ControlPlaneMeeting, AFirstRankThatNeverComesIsNamedWithItsAddress) {
  const std::string port = std::to_string(free_port());
  ::testing::internal::CaptureStderr();
  const auto errors = run_processes({meets(member_at(std::stoi(port), 1, 2), milliseconds(500))});
  EXPECT_THAT(errors[0], AllOf(StartsWith("environment: rank 1 did not find rank 0 at 127.0.0.1:" + port),
                               HasSubstr("within 0.5 seconds"), HasSubstr("Connection refused")));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("waiting for rank 0 of 2 at 127.0.0.1:" + port + " (0 s): "));
}

TEST(ControlPlaneMeeting, ANameWithoutAnAddressIsReported) {
  Membership own = member_at(free_port(), 1, 2);
  own.point.hosts = {"no-such-host.invalid"};
  EXPECT_THAT(run_processes({meets(own, milliseconds(100))})[0], HasSubstr("that name has no IPv4 address"));
}

TEST(ControlPlaneMeeting, RanksThatNeverComeAreNamedWhileOthersWaitAndAtTheEnd) {
  const int port = free_port();
  const std::string waiting = "waiting for ranks 1, 3 of 4 at 127.0.0.1:" + std::to_string(port);
  ::testing::internal::CaptureStderr();
  const auto errors = run_processes(
      {meets(member_at(port, 0, 4), milliseconds(1500)), meets(member_at(port, 2, 4), milliseconds(1500))});
  EXPECT_THAT(errors, Each(AllOf(StartsWith("environment: not all of the 4 processes came to 127.0.0.1:"),
                                 HasSubstr("ranks 1, 3 missing"))));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(waiting + " (0 s); hosts that have come: host0, host2\n"),  // the first rank's
                    HasSubstr(waiting + " (1 s)\n")));                                    // the other one's
}

TEST(ControlPlaneMeeting, AProcessThatIsGoneBeforeAllHaveComeIsNamed) {
  const int port = free_port();
  const auto errors = run_processes({in_time(member_at(port, 0, 3)), late(milliseconds(300), member_at(port, 1, 3)),
                                     [&] { FrameConnection gone = mute_member(member_at(port, 2, 3)); }});
  for (const std::size_t rank : {0, 1}) {
    EXPECT_THAT(errors[rank], AllOf(StartsWith("environment: rank 2 on host host2 is lost: its process is gone"),
                                    HasSubstr("the start, before all ranks had met")));
  }
}

TEST(ControlPlaneMeeting, ASilentProcessIsNamedBeforeAllHaveComeAndToThoseThatComeLater) {
  const int port = free_port();
  std::optional<FrameConnection> silent;
  const auto errors = run_processes({in_time(member_at(port, 0, 4)), in_time(member_at(port, 1, 4)),
                                     late(milliseconds(6500), member_at(port, 3, 4)),
                                     [&] { silent = mute_member(member_at(port, 2, 4)); }});
  for (const std::size_t rank : {0, 1, 2}) {
    EXPECT_THAT(errors[rank], StartsWith("environment: rank 2 on host host2 is lost: it sent no heartbeat for 5"));
  }
}

TEST(ControlPlaneMeeting, ASilentFirstRankIsNamedBeforeAllHaveCome) {
  const int port = free_port();
  Listener listener(listen_at(static_cast<std::uint16_t>(port)));
  std::optional<Listener::Arrival> member;
  const Process silent = [&] {
    while (!(member = listener.next())) std::this_thread::sleep_for(milliseconds(5));
    member->connection.send({"welcome", "host0"});
  };
  const auto errors = run_processes({silent, in_time(member_at(port, 1, 3))});
  EXPECT_THAT(errors[1], StartsWith("environment: rank 0 on host host0 is lost: it sent no heartbeat for 7 seconds"));
}

TEST(ControlPlaneMeeting, AnotherVersionIsRefused) {
  const int port = free_port();
  const Process newer = [&] {
    FrameConnection connection(call(port));
    connection.send({"hello", "99", member_at(port, 0, 1).point.secret, "2", "1", "whatever came later", "and more"});
    EXPECT_EQ(answer_on(connection).value_or(Frame{}).at(0), "failure");
  };
  const auto errors = run_processes({in_time(member_at(port, 0, 2)), newer});
  EXPECT_THAT(errors[0], StartsWith("user: rank 1 runs another version of teratron"));
}

TEST(ControlPlaneMeeting, AnEarlyEndIsReportedToThoseThatCome) {
  for (const int rank : {0, 1}) {
    const int port = free_port();
    const auto errors = run_processes({[&] {
                                         ControlPlane control(member_at(port, rank, 2), settings_for(seconds(20)));
                                         control.report_early_end(2);
                                       },
                                       late(milliseconds(200), member_at(port, 1 - rank, 2))});
    EXPECT_THAT(errors[1], StartsWith(fmt::format("environment: rank {0} on host host{0} is lost: it ended with exit "
                                                  "code 2",
                                                  rank)));
  }
}

// torchrun listens at MASTER_PORT itself, and another job may have the port after it.
TEST(ControlPlaneMeeting, PortsOfOthersArePassedOver) {
  const int port = free_port();
  const Socket store = listen_at(static_cast<std::uint16_t>(port));
  ASSERT_TRUE(store);
  const auto member = [&](const std::string& job, int rank) {
    Membership result = member_at(port, rank, 2);
    result.point.secret = job;
    result.point.ports.clear();
    for (int n = 1; n < 9; ++n) result.point.ports.push_back(static_cast<std::uint16_t>(port + n));
    return result;
  };
  const auto errors =
      run_processes({in_time(member("one", 0)), late(milliseconds(200), member("two", 0)),
                     late(milliseconds(100), member("two", 1)), late(milliseconds(600), member("one", 1))});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ControlPlane, TextsOfAnySizeReachTheirGroup) {
  const auto errors = run_job(4, [](ControlPlane& control, int rank) {
    for (const std::size_t bytes : {0, 1, 70000, 5000000}) {
      const std::string key = fmt::format("{} of {}", bytes, rank % 2);
      const auto texts = control.all_gather(key, rank / 2, 2, std::string(bytes + static_cast<std::size_t>(rank), 'x'));
      for (std::size_t member = 0; member < 2; ++member) {
        const std::size_t from = 2 * member + static_cast<std::size_t>(rank % 2);
        if (texts.at(member) != std::string(bytes + from, 'x')) throw std::runtime_error("another text came");
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ControlPlane, AnExchangeThatSomebodyIsLateForSaysWho) {
  ::testing::internal::CaptureStderr();
  const auto errors = run_job(3, [](ControlPlane& control, int rank) {
    if (rank == 2) std::this_thread::sleep_for(milliseconds(600));
    control.all_gather("world", rank, 3, "");
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("ranks 0, 1 wait for rank 2 in a host exchange\n"));
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// A job of three that ends when all wait for so long; `waits(rank, seconds since the meeting)` says who does.
std::vector<std::string> run_waiting_job(seconds length, const std::function<bool(int rank, double since)>& waits,
                                         seconds longest = seconds(2)) {
  const int port = free_port();
  std::vector<Process> members;
  for (int rank = 0; rank < 3; ++rank) {
    members.push_back([=] {
      ControlSettings settings = settings_for(seconds(20));
      settings.watch.longest = longest;
      ControlPlane control(member_at(port, rank, 3), settings);
      const Place::Use place(control.place());
      control.meet();
      note_activity({.name = "exchange", .iteration = rank});
      for (const auto start = Clock::now(); Clock::now() - start < length;) {
        std::optional<Place::Waits> waiting;
        const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
        const double began = since();
        if (waits(rank, began)) waiting.emplace(AwaitedCall{.name = "barrier of", .size = 3});
        while (waits(rank, began) == waits(rank, since()) && since() < began + 20 &&
               since() < static_cast<double>(length.count())) {
          control.throw_if_failed();
          std::this_thread::sleep_for(milliseconds(5));
        }
      }
      control.finish();
    });
  }
  return run_processes(members);
}

TEST(ControlPlane, RanksThatAllWaitForOneAnotherAreEndedWithWhatTheyWaitIn) {
  ::testing::internal::CaptureStderr();
  const auto errors = run_waiting_job(seconds(60), [](int, double) { return true; });
  EXPECT_THAT(
      errors,
      Each(AllOf(StartsWith("environment: nothing has moved for "),
                 HasSubstr("rank 0 on host0 in: exchange of iteration 0, in barrier of ranks 0, 1, 2, rank 1 on"),
                 HasSubstr("start again from the last checkpoint"))));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the job ends after 2 seconds of that"));
}

TEST(ControlPlane, RanksThatWaitForOneThatComputesAreNotEndedHoweverLongItTakes) {
  // The first one, which judges, in one half of the time, and another in the other.
  EXPECT_THAT(run_waiting_job(seconds(6), [](int rank, double since) { return rank != (since < 3 ? 0 : 2); }),
              Each(IsEmpty()));
}

TEST(ControlPlane, RanksThatWaitAgainAndAgainAreNotEnded) {
  // The limit is longer than a pause of the machine that a control thread does not notice (3 seconds).
  EXPECT_THAT(run_waiting_job(
                  seconds(6), [](int, double since) { return std::fmod(since, 1) < 0.98; }, seconds(4)),
              Each(IsEmpty()));
}

TEST(ControlPlane, AFailureReachesRanksThatWait) {
  for (const int lost : {0, 1}) {
    const auto errors = run_job(3, [&](ControlPlane& control, int rank) {
      const Place::Use place(control.place());
      note_activity({.name = "the test"});
      if (rank != lost) control.all_gather("world", rank, 3, "");
      control.report_failure("this rank was told to fail");
      throw UserError("here");
    });
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& error = errors[static_cast<std::size_t>(rank)];
      if (rank == lost) continue;
      EXPECT_THAT(error, AllOf(StartsWith(fmt::format("environment: rank {0} on host host{0} is lost", lost)),
                               HasSubstr("this rank was told to fail"), HasSubstr("in: the test.")));
    }
  }
}

}  // namespace
}  // namespace teratron::testing
