// The Python environment of scripts/oracle-env, which tests that need PyTorch run programs of; they skip without it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace teratron::testing {

inline std::filesystem::path oracle_environment() {
  const char* environment = std::getenv("TERATRON_ORACLE_ENV");
  return environment != nullptr ? environment : "/var/tmp/teratron-oracle";
}

// Why there is no oracle; empty where there is one.
inline std::string why_no_oracle() {
  if (std::filesystem::exists(oracle_environment() / ".ready")) return "";
  return "no Python environment at " + oracle_environment().string() + "; scripts/oracle-env makes it";
}

// Whether it has the Python module.
inline bool oracle_has(const std::string& module) {
  const std::string python = (oracle_environment() / "bin" / "python").string();
  return std::system(("'" + python + "' -c 'import " + module + "' 2>/dev/null").c_str()) == 0;
}

// Runs tests/oracle/PROGRAM, whose output goes to `log`. The exit status.
inline int run_oracle(const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& log) {
  const auto quoted = [](const std::filesystem::path& word) { return " '" + word.string() + "'"; };
  std::string command = "HF_HUB_OFFLINE=1" + quoted(oracle_environment() / "bin" / "python") +
                        quoted(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests" / "oracle" / program);
  for (const std::string& argument : arguments) command += quoted(argument);
  return std::system((command + " >" + quoted(log) + " 2>&1").c_str());
}

}  // namespace teratron::testing
