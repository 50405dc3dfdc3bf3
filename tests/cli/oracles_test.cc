// Commands beside the programs that they should agree with: each program of tests/oracle runs both.
#include <sys/wait.h>

#include "cli/binary.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

// Skips where the Python environment, or a package that the program needs, is not there.
void expect_agreement(const std::string& program, const Words& more = {}) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int kLacksAPackage = 77;
  const TemporaryFolder folder;
  const int status = run_oracle(program, with({TERATRON_BINARY, folder.path().string()}, more), folder / "log");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kLacksAPackage) {
    GTEST_SKIP() << "a package is missing in " << oracle_environment()
                 << ", which was made without it: " << read_file(folder / "log");
  }
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

#ifdef TERATRON_SANITIZED
constexpr const char* kTooSlow = "with sanitizers, it takes minutes; the plain build has this test too";
#else
constexpr const char* kTooSlow = nullptr;
#endif

TEST(ChatOracleCommands, TenUpdatesOnChatsEndWherePyTorchEnds) { expect_agreement("chats_finetune_as_pytorch.py"); }

TEST(ClassifyOracle, UpdatesPredictionsAndMasksAreThoseOfTransformers) {
  expect_agreement("classify_as_transformers.py");
}

TEST(EmbedOracle, TextsHaveTheVectorsThatTransformersGivesThem) {
  if (kTooSlow != nullptr) GTEST_SKIP() << kTooSlow;
  expect_agreement("embeds_as_transformers.py");
}

TEST(EmbedOracle, LearnedVectorsAreThoseOfSentenceTransformersLosses) {
  if (kTooSlow != nullptr) GTEST_SKIP() << kTooSlow;
  expect_agreement("vectors_as_sentence_transformers.py");
}

TEST(EncodersOracle, RobertaAndDistilBertAreThoseOfTransformers) { expect_agreement("encoders_as_transformers.py"); }

TEST(EvalLambada, FindsTheWordsThatTransformersFinds) {
  if (kTooSlow != nullptr) GTEST_SKIP() << kTooSlow;
  const fs::path published = fs::path(TERATRON_SOURCE_DIR) / "../shared/data/lambada/lambada_test.jsonl";
  expect_agreement("lambada_as_transformers.py", fs::exists(published) ? Words{published} : Words{});
}

TEST(EvalMultipleChoice, ScoresChoicesAsTransformersDoes) {
  if (kTooSlow != nullptr) GTEST_SKIP() << kTooSlow;
  expect_agreement("multiple_choice_as_transformers.py");
}

TEST(FinetuneOracle, TenUpdatesOfAHuggingFaceGpt2EndWherePyTorchEnds) { expect_agreement("finetune_as_pytorch.py"); }

TEST(LabelNamesOracle, PairsHaveTheLabelsThatTransformersGivesThem) { expect_agreement("labels_as_transformers.py"); }

TEST(PreferenceOracle, TenUpdatesEndWhereTrlsEnd) {
  if (!oracle_has("trl")) GTEST_SKIP() << "no TRL in the Python environment; scripts/oracle-env adds it";
  expect_agreement("preferences_as_trl.py");
}

TEST(ServeOracle, OpenAIsClientAndLmEvalWorkAgainstIt) { expect_agreement("serves_openai.py"); }

TEST(TagOracle, UpdatesAndLabelsOfWordsAreThoseOfTransformers) { expect_agreement("tag_as_transformers.py"); }

}  // namespace
}  // namespace teratron::testing
