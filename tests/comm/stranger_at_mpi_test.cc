// Strangers at the ports of MPI, which has no secret: on one host there are no such ports, and where the user wants
// them, a job that a stranger's connection stops says so and ends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "comm/control/socket.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

// Where a process listens (proc(5): sockets by their inode).
std::vector<std::uint16_t> listening_ports(pid_t process) {
  std::set<std::string> own;
  for (const fs::directory_entry& descriptor : fs::directory_iterator(fmt::format("/proc/{}/fd", process))) {
    std::error_code closed;
    const std::string leads_to = fs::read_symlink(descriptor, closed).string();
    if (leads_to.starts_with("socket:[")) own.insert(leads_to.substr(8, leads_to.size() - 9));
  }
  std::vector<std::uint16_t> ports;
  std::ifstream table(fmt::format("/proc/{}/net/tcp", process));
  for (std::string line; std::getline(table, line);) {
    std::istringstream stream(line);
    const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
    if (words.size() < 10 || words[3] != "0A" || !own.contains(words[9])) continue;
    ports.push_back(static_cast<std::uint16_t>(std::stoul(words[1].substr(words[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

// Two ranks of mpirun in endless sums, which end when their mpirun does.
class StrangerAtMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no(LaunchedBy::kMpirun); !reason.empty()) GTEST_SKIP() << reason;
  }
  void start(const std::string& variables) {
    job_ = launch(LaunchedBy::kMpirun, 2, {"bash", "-c", variables + " exec " TERATRON_COMM_PROGRAM " lose 2 2 0"});
    const auto have_met = [&] {
      const std::string errors = job_->errors_so_far();
      return errors.find("rank 0 has met") != errors.npos && errors.find("rank 1 has met") != errors.npos;
    };
    for (int looks = 0; !have_met(); ++looks) {  // the port where they meet is closed then
      ASSERT_LT(looks, 12'000) << job_->errors_so_far();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::vector<std::vector<std::uint16_t>> ports() const {
    return {listening_ports(job_->process_of(0)), listening_ports(job_->process_of(1))};
  }
  std::unique_ptr<LaunchedJob> job_;
};

TEST_F(StrangerAtMpi, FindsNoPortWhereAllRanksRunOnOneHost) {
  start("");
  EXPECT_THAT(ports(), Each(IsEmpty()));
}

TEST_F(StrangerAtMpi, WhoHoldsAConnectionOpenEndsTheJobWithAMessage) {
  start("OMPI_MCA_btl=self,tcp WATCHDOG=2");
  const std::vector<std::vector<std::uint16_t>> ports_of_ranks = ports();
  ASSERT_THAT(ports_of_ranks, Each(Not(IsEmpty())));
  std::vector<Socket> strangers;
  for (const std::uint16_t port : ports_of_ranks[0]) {
    strangers.push_back(connect_to(resolve("127.0.0.1", port).at(0), std::chrono::seconds(1)));
    const std::string request = "GET / HTTP/1.0\r\n\r\n";
    ASSERT_GT(::send(strangers.back().get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
  }
  const JobOutcome outcome = job_->wait(std::chrono::seconds(60));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("error: nothing has moved for 2 seconds"),
                                    HasSubstr("the test of iteration"), HasSubstr("A stranger's connection")));
}

}  // namespace
}  // namespace teratron::testing
