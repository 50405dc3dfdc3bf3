// The commands that are tortured, each with the way to go on that its documentation gives.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/binary.h"
#include "torture/disk.h"

namespace teratron::torture {

using testing::Words;

struct Scenario {
  std::string name;
  Words command;         // words after `teratron`
  Words goes_on = {};    // the same, where a checkpoint stands; empty: the command again
  std::string run = {};  // folder of a training's checkpoints, below that of results
  int processes = 1;     // more: ranks of mpirun
  Words before = {};     // a command whose results stand there when the first one begins
};

// Inputs that all scenarios read, and a folder for their results.
class Workplace {
 public:
  explicit Workplace(const std::filesystem::path& folder);

  const std::filesystem::path& results() const { return results_; }
  std::vector<Scenario> scenarios() const;

 private:
  std::string in(const std::string& name) const { return (inputs_ / name).string(); }
  std::string out(const std::string& name) const { return (results_ / name).string(); }
  void make_texts() const;
  void make_models() const;
  std::vector<Scenario> trainings() const;
  std::vector<Scenario> tasks() const;
  std::vector<Scenario> corpora() const;
  std::vector<Scenario> others() const;

  std::filesystem::path inputs_, results_;
};

// Files that must be equal in two runs: all, but logs with times, the settings of the last start (config.toml beside
// the checkpoints), what a run that went back has set aside, and remains that the next run removes.
Tree results_in(const Tree& tree);

}  // namespace teratron::torture
