// Labels by their names here and in transformers.

#include "cli/binary.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(LabelNamesOracle, PairsHaveTheLabelsThatTransformersGivesThem) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("labels_as_transformers.py", {TERATRON_BINARY, folder.path().string()}, folder / "log");
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

}  // namespace
}  // namespace teratron::testing
