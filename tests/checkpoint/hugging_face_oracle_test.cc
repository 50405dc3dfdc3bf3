// transformers and safetensors, the Python packages, read what we export. Needs the environment of scripts/oracle-env;
// skips where that was not made.
#include <gtest/gtest.h>

#include <cstdlib>

#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

fs::path oracle_python() {
  const char* environment = std::getenv("TERATRON_ORACLE_ENV");
  return fs::path(environment != nullptr ? environment : "/var/tmp/teratron-oracle") / "bin" / "python";
}

TEST(HuggingFaceOracle, TransformersLoadsOurExportAsTheSameModel) {
  if (!fs::exists(oracle_python().parent_path().parent_path() / ".ready")) {
    GTEST_SKIP() << "no Python environment at " << oracle_python() << "; scripts/oracle-env makes it";
  }
  const testing::TemporaryFolder folder;
  const fs::path tests = fs::path(TERATRON_SOURCE_DIR) / "tests";
  import_from_hugging_face(tests / "golden" / "gpt2_tiny", folder / "run");
  export_to_hugging_face(folder / "run", folder / "hf");
  const std::string command = "HF_HUB_OFFLINE=1 '" + oracle_python().string() + "' '" +
                              (tests / "oracle" / "hugging_face_reads_ours.py").string() + "' '" +
                              (folder / "hf").string() + "' '" + (tests / "golden" / "gpt2_tiny").string() + "' > '" +
                              (folder / "log").string() + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << testing::bytes_of_file(folder / "log");
}

}  // namespace
}  // namespace teratron
