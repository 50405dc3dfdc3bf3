// Clients of others against `teratron serve`.
#include <sys/wait.h>

#include "cli/binary.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(ServeOracle, OpenAIsClientAndLmEvalWorkAgainstIt) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("serves_openai.py", {TERATRON_BINARY, folder.path().string()}, folder / "log");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "a package is missing in " << oracle_environment()
                 << ", which was made without it: " << read_file(folder / "log");
  }
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

}  // namespace
}  // namespace teratron::testing
