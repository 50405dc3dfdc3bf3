// `teratron eval lambada` end to end: against transformers, and how it refuses. Its rule is tested in
// tests/eval/lambada_test.cc.

#include "cli/tiny_training.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

TEST(EvalLambada, FindsTheWordsThatTransformersFinds) {
#ifdef TERATRON_SANITIZED
  GTEST_SKIP() << "with sanitizers, its model takes minutes to train; the plain build has this test too";
#endif
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  Words arguments = {TERATRON_BINARY, folder.path().string()};
  const std::filesystem::path published =
      std::filesystem::path(TERATRON_SOURCE_DIR) / "../shared/data/lambada/lambada_test.jsonl";
  if (std::filesystem::exists(published)) arguments.push_back(published);
  const int status = run_oracle("lambada_as_transformers.py", arguments, folder / "log");
  EXPECT_EQ(status, 0) << read_file(folder / "log");
}

TEST(EvalLambada, SaysWhatItLeavesOutAndRefusesWhatIsNone) {
  const TinyTraining tiny;
  succeed(tiny.command({"--train-iters", "2", "--save", tiny.path("run"), "--peak-tflops", "1"}));
  std::string longest;
  for (int i = 0; i < 60; ++i) longest += "gradient ";
  write_file_atomically(tiny.path("data.jsonl"),
                        "{\"text\": \"the rank waits\"}\n{\"text\": \" alone\\n\"}\n{\"text\": \"" + longest + "\"}\n");
  const Words words = {"eval", "lambada", "--load", tiny.path("run"), "--data", tiny.path("data.jsonl")};
  EXPECT_THAT(succeed(words), AllOf(HasSubstr("of 2 last words found"), HasSubstr("1 passage without two words"),
                                    HasSubstr("1 passage longer"), HasSubstr("45.18 % (355M)")));
  const auto json = json_of(words);
  EXPECT_EQ(json["examples"], 2);
  EXPECT_EQ(json["left_out"], 1);
  EXPECT_EQ(json["cut"], 1);
  write_file_atomically(tiny.path("data.jsonl"), "{\"text\": \"alone\"}\n");
  EXPECT_THAT(refused(words), HasSubstr("no passage has two words"));
}

}  // namespace
}  // namespace teratron::testing
