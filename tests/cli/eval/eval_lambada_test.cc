// `teratron eval lambada` end to end, and how it refuses. Its rule is tested in tests/eval/lambada_test.cc.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

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
