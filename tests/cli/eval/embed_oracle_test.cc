// Vectors of texts here and in transformers.

#include "cli/binary.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(EmbedOracle, TextsHaveTheVectorsThatTransformersGivesThem) {
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "with sanitizers, a published model takes minutes; the plain build has this test too";
#endif
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("embeds_as_transformers.py", {TERATRON_BINARY, folder.path().string()}, folder / "log");
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

TEST(EmbedOracle, LearnedVectorsAreThoseOfSentenceTransformersLosses) {
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "with sanitizers, some 20 runs take minutes; the plain build has this test too";
#endif
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status =
      run_oracle("vectors_as_sentence_transformers.py", {TERATRON_BINARY, folder.path().string()}, folder / "log");
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

}  // namespace
}  // namespace teratron::testing
