// Runs the teratron binary as a user would and keeps what came of it.
#pragma once

#include <string>
#include <vector>

#include "base/child_program.h"

namespace teratron::testing {

// `standard_output` is where its output goes instead of into the Outcome, where given.
inline Outcome run_teratron(const std::vector<std::string>& arguments, const std::string& standard_output = "") {
  std::vector<std::string> words = {TERATRON_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return ChildProgram(words, {}, standard_output).wait();
}

}  // namespace teratron::testing
