// Starts programs as jobs of processes, by mpirun or by the address of the first one in their environment.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "base/child_program.h"

namespace teratron::testing {

enum class LaunchedBy { kMpirun, kAddress };
inline std::ostream& operator<<(std::ostream& stream, LaunchedBy launcher) {
  return stream << (launcher == LaunchedBy::kMpirun ? "mpirun" : "address");
}

// Why this cannot be; empty where it can.
inline std::string why_no(LaunchedBy launcher) {
  return launcher == LaunchedBy::kMpirun && std::string(TERATRON_MPIRUN).empty()
             ? "MPI was not found when this was built (libopenmpi-dev, openmpi-bin): its ranks are not tested"
             : "";
}

// Whose value is a process's rank.
inline std::string rank_variable(LaunchedBy launcher) {
  return launcher == LaunchedBy::kMpirun ? "OMPI_COMM_WORLD_RANK" : "RANK";
}

// How the program names what started it.
inline std::string name_of(LaunchedBy launcher) { return launcher == LaunchedBy::kMpirun ? "mpirun" : "the job at "; }

struct JobOutcome : Outcome {
  std::vector<std::string> errors_of_rank;  // what each rank wrote to standard error
};

// A port that nobody listens at now.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof(address);
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

class LaunchedJob {
 public:
  virtual ~LaunchedJob() = default;
  virtual pid_t process_of(int rank) const = 0;  // 0 where it does not run
  virtual std::string errors_so_far() const = 0;
  // Throws where it has not ended within `longest`.
  virtual JobOutcome wait(std::chrono::seconds longest) = 0;
};

// Environment of a program under mpirun: as root too, with any number of ranks on any number of cores. Open MPI's files
// lie in a folder of this process: the folder that jobs share otherwise is made by the first and removed by the last,
// which another process's jobs may meet.
inline std::vector<std::string> mpirun_environment() {
  static const TemporaryFolder files(TemporaryFolder::kDisk);
  return {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_orte_tmpdir_base=" + files.path().string(),
          "ASAN_OPTIONS=detect_leaks=0"};  // MPI keeps memory to the end
}

// Every line that a rank wrote to standard error begins with "[1,RANK]<stderr>:".
inline JobOutcome with_ranks(const Outcome& outcome, int ranks) {
  JobOutcome job{outcome, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string tag = "[1," + std::to_string(rank) + "]<stderr>:";
    std::istringstream lines(outcome.errors);
    std::string& own = job.errors_of_rank.emplace_back();
    for (std::string line; std::getline(lines, line);) {
      if (const std::size_t at = line.find(tag); at != line.npos) own += line.substr(at + tag.size()) + "\n";
    }
  }
  return job;
}

// The process of a rank that runs under mpirun on this host; 0 where it does not run.
inline pid_t process_of_mpirun(pid_t of_mpirun, int rank) {
  const std::string mpirun = std::to_string(of_mpirun);
  std::ifstream children("/proc/" + mpirun + "/task/" + mpirun + "/children");
  for (pid_t child = 0; children >> child;) {
    const std::string variable = '\0' + std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0';
    std::ifstream file("/proc/" + std::to_string(child) + "/environ", std::ios::binary);
    const std::string variables((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (variables.find(variable) != variables.npos) return child;
  }
  return 0;
}

class MpirunJob final : public LaunchedJob {
 public:
  MpirunJob(int ranks, const std::vector<std::string>& program)
      : ranks_(ranks), mpirun_(words_for(ranks, program), mpirun_environment()) {}
  pid_t process_of(int rank) const override { return process_of_mpirun(mpirun_.pid(), rank); }
  std::string errors_so_far() const override { return mpirun_.errors_so_far(); }
  JobOutcome wait(std::chrono::seconds longest) override { return with_ranks(mpirun_.wait(longest), ranks_); }

 private:
  static std::vector<std::string> words_for(int ranks, const std::vector<std::string>& program) {
    std::vector<std::string> words = {TERATRON_MPIRUN, "--oversubscribe", "--tag-output", "-n", std::to_string(ranks)};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
  const int ranks_;
  ChildProgram mpirun_;
};

// A job started like a loop in a shell: nothing ends the other processes where one fails.
class AddressJob final : public LaunchedJob {
 public:
  AddressJob(int ranks, const std::vector<std::string>& program) {
    const std::string port = std::to_string(free_port());
    for (int rank = 0; rank < ranks; ++rank) {
      ranks_.push_back(std::make_unique<ChildProgram>(
          program, std::vector<std::string>{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
                                            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
    }
  }
  pid_t process_of(int rank) const override { return ranks_.at(static_cast<std::size_t>(rank))->pid(); }
  std::string errors_so_far() const override {
    std::string errors;
    for (const auto& rank : ranks_) errors += rank->errors_so_far();
    return errors;
  }
  // Its exit code is the least of those that are not 0, which is that of the cause: a lost rank has the greatest.
  JobOutcome wait(std::chrono::seconds longest) override {
    end_the_stopped(std::chrono::steady_clock::now() + longest);
    JobOutcome job;
    job.exit_code = 0;
    for (const auto& rank : ranks_) {
      const Outcome outcome = rank->wait(std::chrono::seconds(0));
      if (outcome.exit_code != 0 && (job.exit_code == 0 || outcome.exit_code < job.exit_code)) {
        job.exit_code = outcome.exit_code;
      }
      job.output += outcome.output;
      job.errors += outcome.errors;
      job.errors_of_rank.push_back(outcome.errors);
    }
    return job;
  }

 private:
  // Returns when all have ended, of which those that are stopped are ended when the others have.
  void end_the_stopped(std::chrono::steady_clock::time_point latest) {
    for (std::size_t ended = 0; ended < ranks_.size();) {
      std::size_t stopped = 0;
      ended = 0;
      for (const auto& rank : ranks_) {
        if (rank->has_ended()) {
          ++ended;
        } else if (read_file("/proc/" + std::to_string(rank->pid()) + "/status").find("State:\tT") !=
                   std::string::npos) {
          ++stopped;
        }
      }
      const bool is_late = std::chrono::steady_clock::now() > latest;
      if (is_late || (ended > 0 && ended + stopped == ranks_.size())) {
        for (const auto& rank : ranks_) {
          if (!rank->has_ended()) ::kill(rank->pid(), SIGKILL);
        }
      }
      if (is_late) throw std::runtime_error("a job still runs after its time:\n" + errors_so_far());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::vector<std::unique_ptr<ChildProgram>> ranks_;
};

inline std::unique_ptr<LaunchedJob> launch(LaunchedBy launcher, int ranks, const std::vector<std::string>& program) {
  if (launcher == LaunchedBy::kMpirun) return std::make_unique<MpirunJob>(ranks, program);
  return std::make_unique<AddressJob>(ranks, program);
}

// A job with every rank on a host of its own (tests/comm/process/on-several-hosts); exit code 77 where this machine
// cannot pretend to be several, with the reason as its only line.
constexpr int kNoSeveralHosts = 77;
inline JobOutcome run_on_several_hosts(LaunchedBy launcher, int hosts, const std::vector<std::string>& program,
                                       std::chrono::seconds longest) {
  std::vector<std::string> words = {TERATRON_SOURCE_DIR "/tests/comm/process/on-several-hosts",
                                    launcher == LaunchedBy::kMpirun ? "mpirun" : "address", std::to_string(hosts)};
  words.insert(words.end(), program.begin(), program.end());
  return with_ranks(ChildProgram(words, mpirun_environment()).wait(longest), hosts);
}

}  // namespace teratron::testing
