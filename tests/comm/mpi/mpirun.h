// Starts programs under mpirun, with any number of ranks on any number of cores, as root too.
#pragma once

#include <signal.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/child_program.h"

namespace teratron::testing {

// Why there is none; empty where there is one.
inline std::string why_no_mpirun() {
  return std::string(TERATRON_MPIRUN).empty()
             ? "MPI was not found when this was built (libopenmpi-dev, openmpi-bin): ranks as processes are not tested"
             : "";
}

// The command and what it needs in its environment. Every line of a rank's output begins with "[1,RANK]<stderr>:".
struct MpirunCommand {
  std::vector<std::string> words, environment;
};

inline MpirunCommand mpirun_command(int ranks, const std::vector<std::string>& program) {
  MpirunCommand command{{TERATRON_MPIRUN, "--oversubscribe", "--tag-output", "-n", std::to_string(ranks)},
                        {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMP_WAIT_POLICY=passive",
                         "ASAN_OPTIONS=detect_leaks=0"}};  // MPI keeps memory to the end
  command.words.insert(command.words.end(), program.begin(), program.end());
  return command;
}

class MpirunProgram : public ChildProgram {
 public:
  MpirunProgram(int ranks, const std::vector<std::string>& program) : MpirunProgram(mpirun_command(ranks, program)) {}

  // The process of a rank on this host; 0 where it does not run.
  pid_t process_of(int rank) const {
    std::ifstream children("/proc/" + std::to_string(pid()) + "/task/" + std::to_string(pid()) + "/children");
    for (pid_t child = 0; children >> child;) {
      const std::string variable = '\0' + std::string("OMPI_COMM_WORLD_RANK=") + std::to_string(rank) + '\0';
      std::ifstream file("/proc/" + std::to_string(child) + "/environ", std::ios::binary);
      const std::string variables((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      if (variables.find(variable) != variables.npos) return child;
    }
    return 0;
  }

 private:
  explicit MpirunProgram(const MpirunCommand& command) : ChildProgram(command.words, command.environment) {}
};

// The same with every rank on a host of its own (tests/comm/mpi/on-several-hosts); exit code 77 where this machine
// cannot pretend to be several, with the reason as its only line.
class SeveralHostsProgram : public ChildProgram {
 public:
  static constexpr int kImpossible = 77;
  SeveralHostsProgram(int hosts, const std::vector<std::string>& program)
      : ChildProgram(words_for(hosts, program), mpirun_command(hosts, {}).environment) {}

 private:
  static std::vector<std::string> words_for(int hosts, const std::vector<std::string>& program) {
    std::vector<std::string> words = {TERATRON_SOURCE_DIR "/tests/comm/mpi/on-several-hosts", std::to_string(hosts)};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
};

// What a rank wrote to standard error.
inline std::string errors_of_rank(const std::string& errors, int rank) {
  const std::string tag = "[1," + std::to_string(rank) + "]<stderr>:";
  std::istringstream lines(errors);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(tag); at != line.npos) result += line.substr(at + tag.size()) + "\n";
  }
  return result;
}

}  // namespace teratron::testing
