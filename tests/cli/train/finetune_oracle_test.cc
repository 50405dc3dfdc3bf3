// Fine-tuning a Hugging Face GPT-2 here and in PyTorch.

#include "cli/binary.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(FinetuneOracle, TenUpdatesOfAHuggingFaceGpt2EndWherePyTorchEnds) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("finetune_as_pytorch.py", {TERATRON_BINARY, folder.path().string()}, folder / "log");
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

}  // namespace
}  // namespace teratron::testing
