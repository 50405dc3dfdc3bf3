// How processes that know an address find each other: in any order, whoever else calls there, and what they are told
// where something is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "comm/tcp_jobs.h"

namespace teratron {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using testing::free_port;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::launch_at;
using testing::run_processes;
using testing::run_rank;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;
using Process = std::function<void()>;

void nothing(Transport&) {}

Process late(milliseconds delay, const AddressLaunch& launch) {
  return [=] {
    std::this_thread::sleep_for(delay);
    run_rank(launch, nothing);
  };
}

Process in_time(const AddressLaunch& launch) { return late(milliseconds(0), launch); }

// A process that only meets, and gives up after `longest`.
Process meets(const AddressLaunch& launch, milliseconds longest) {
  return [=] { TcpJob(launch, "host" + std::to_string(launch.rank), longest).meet("contact"); };
}

sockaddr_in loopback(int port) { return resolve("127.0.0.1", static_cast<std::uint16_t>(port)).at(0); }

Socket call(int port) {
  while (true) {
    if (Socket socket = connect_to(loopback(port), milliseconds(1000))) return socket;
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(TcpRendezvous, AnyProcessMayBeLate) {
  for (int who = 0; who < 3; ++who) {
    const int port = free_port();
    std::vector<Process> processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.push_back(late(milliseconds(rank == who ? 500 : 0), launch_at(port, rank, 3)));
    }
    EXPECT_THAT(run_processes(processes), Each(IsEmpty()));
  }
}

TEST(TcpRendezvous, StrangersNeitherJoinNorKeepAnybodyWaiting) {
  const int port = free_port();
  const auto start = Clock::now();
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
    run_rank(launch_at(port, 1, 2), nothing);
  };
  EXPECT_THAT(run_processes({in_time(launch_at(port, 0, 2)), strange}), Each(IsEmpty()));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

// Whoever finds a rank's door without knowing the job's secret, or wants another rank.
TEST(TcpRendezvous, StrangersAtOtherDoorsStayOut) {
  const int port = free_port();
  std::vector<Socket> strangers;
  const Process second = [&] {
    TcpJob job(launch_at(port, 1, 3), "host");
    job.meet("");
    for (int door = 0; door < 1024; ++door) {  // of this process, which are both ranks'
      int listens = 0;
      socklen_t length = sizeof(listens);
      const bool is_socket = ::getsockopt(door, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0;
      if (!is_socket || listens == 0) continue;
      sockaddr_in address{};
      length = sizeof(address);
      ::getsockname(door, reinterpret_cast<sockaddr*>(&address), &length);
      for (const Frame& frame : {Frame{"member", "guess", "2", "1"}, Frame{"member"}, Frame{}, Frame{"hello"}}) {
        strangers.push_back(call(ntohs(address.sin_port)));
        send_frame(strangers.back(), frame, milliseconds(100));
      }
    }
    Liveness liveness(1, 3, "host", [](const std::string&) { std::abort(); });
    job.connect(liveness);
  };
  const auto errors = run_processes({in_time(launch_at(port, 0, 3)), second, in_time(launch_at(port, 2, 3))});
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GE(strangers.size(), 4U);
}

TEST(TcpRendezvous, AnotherWorldSizeIsToldToAll) {
  const int port = free_port();
  const auto errors = run_processes(
      {in_time(launch_at(port, 0, 3)), in_time(launch_at(port, 1, 3)), late(milliseconds(200), launch_at(port, 2, 4))});
  EXPECT_THAT(errors, Each(AllOf(StartsWith("user: rank 2 on host host was started with WORLD_SIZE=4, and rank 0 on"),
                                 HasSubstr("with WORLD_SIZE=3; start all processes with the same number"))));
}

TEST(TcpRendezvous, TheSameRankTwiceIsToldToAllAndToThoseWhoComeLater) {
  const int port = free_port();
  const auto errors = run_processes({in_time(launch_at(port, 0, 3)), in_time(launch_at(port, 1, 3)),
                                     in_time(launch_at(port, 1, 3)), late(milliseconds(400), launch_at(port, 2, 3))});
  EXPECT_THAT(errors, Each(StartsWith("user: two processes were started with RANK=1, on host host and on host host")));
}

TEST(TcpRendezvous, ASecondFirstRankIsRefusedThePort) {
  const int port = free_port();
  const auto errors =
      run_processes({meets(launch_at(port, 0, 2), milliseconds(400)), meets(launch_at(port, 0, 2), milliseconds(400))});
  EXPECT_THAT(errors, ::testing::Contains(AllOf(StartsWith("environment: rank 0 cannot listen at port "),
                                                HasSubstr("a second process with RANK=0"))));
}

TEST(TcpRendezvous, AFirstRankThatNeverComesIsNamedWithItsAddress) {
  const int port = free_port();
  const auto errors = run_processes({meets(launch_at(port, 1, 2), milliseconds(300))});
  EXPECT_THAT(errors[0],
              AllOf(StartsWith("environment: rank 1 did not find rank 0 at 127.0.0.1:" + std::to_string(port)),
                    HasSubstr("within 0.3 seconds"), HasSubstr("Connection refused")));
}

TEST(TcpRendezvous, ANameWithoutAnAddressIsTold) {
  AddressLaunch launch = launch_at(free_port(), 1, 2);
  launch.address = "no-such-host.invalid";
  EXPECT_THAT(run_processes({meets(launch, milliseconds(100))})[0], HasSubstr("that name has no IPv4 address"));
}

TEST(TcpRendezvous, RanksThatNeverComeAreNamed) {
  const int port = free_port();
  const auto errors =
      run_processes({meets(launch_at(port, 0, 4), milliseconds(300)), meets(launch_at(port, 2, 4), milliseconds(300))});
  EXPECT_THAT(errors, Each(AllOf(StartsWith("environment: not all of the 4 processes came to 127.0.0.1:"),
                                 HasSubstr("rank 1, 3 is missing"))));
}

TEST(TcpRendezvous, AProcessThatIsGoneBeforeAllHaveComeIsNamed) {
  const int port = free_port();
  const Process gone = [&] {
    const Socket socket = call(port);
    const Frame hello = {"hello", "1", launch_at(port, 0, 1).job, "3", "2", "host2", "1", "127.0.0.1", "", ""};
    ASSERT_TRUE(send_frame(socket, hello, milliseconds(1000)));
    EXPECT_EQ(receive_frame(socket, milliseconds(1000)), Frame{"welcome"});
  };
  const auto errors =
      run_processes({in_time(launch_at(port, 0, 3)), late(milliseconds(300), launch_at(port, 1, 3)), gone});
  for (const std::size_t rank : {0, 1}) {
    EXPECT_THAT(errors[rank], StartsWith("environment: rank 2 on host host2 is lost: its process ended"));
  }
}

TEST(TcpRendezvous, AnotherVersionIsRefused) {
  const int port = free_port();
  const Process newer = [&] {
    const Socket socket = call(port);
    const Frame hello = {"hello", "2", launch_at(port, 0, 1).job, "2", "1", "whatever came later"};
    ASSERT_TRUE(send_frame(socket, hello, milliseconds(1000)));
    EXPECT_EQ(receive_frame(socket, milliseconds(1000)).value_or(Frame{}).at(0), "refused");
  };
  const auto errors = run_processes({in_time(launch_at(port, 0, 2)), newer});
  EXPECT_THAT(errors[0], StartsWith("user: rank 1 runs another version of teratron"));
}

TEST(TcpRendezvous, AnEarlyEndIsToldToWhoeverComes) {
  for (const int rank : {0, 1}) {
    const int port = free_port();
    const auto errors = run_processes(
        {[&] { report_early_end(launch_at(port, rank, 2), "here", 2); }, in_time(launch_at(port, 1 - rank, 2))});
    EXPECT_THAT(errors[1], StartsWith("environment: rank " + std::to_string(rank) +
                                      " on host here is lost: it ended with exit code 2"));
  }
}

// torchrun listens at MASTER_PORT itself, and another job may have the port after it.
TEST(TcpRendezvous, PortsOfOthersArePassedOver) {
  const int port = free_port();
  const Socket store = listen_at(static_cast<std::uint16_t>(port));
  ASSERT_TRUE(store);
  const auto launch = [&](const std::string& job, int rank) {
    AddressLaunch result = launch_at(port, rank, 2);
    result.job = job;
    result.ports.clear();
    for (int n = 1; n < 9; ++n) result.ports.push_back(static_cast<std::uint16_t>(port + n));
    return result;
  };
  const auto errors =
      run_processes({in_time(launch("one", 0)), late(milliseconds(200), launch("two", 0)),
                     late(milliseconds(100), launch("two", 1)), late(milliseconds(600), launch("one", 1))});
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace teratron
