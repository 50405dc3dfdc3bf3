// `teratron eval multiple-choice` end to end, and how it refuses. Forms, tokens and accuracies are tested in
// tests/eval/multiple_choice_test.cc.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

TEST(EvalMultipleChoice, PrintsAccuraciesAndRefusesABadLine) {
  const TinyTraining tiny;
  succeed(tiny.command({"--train-iters", "2", "--save", tiny.path("run"), "--peak-tflops", "1"}));
  const std::string good = R"({"context": "the rank", "choices": ["waits", "éé"], "answer": 0})"
                           "\n";
  write_file_atomically(tiny.path("data.jsonl"), good + good);
  const Words words = {"eval", "multiple-choice", "--load", tiny.path("run"), "--data", tiny.path("data.jsonl")};
  EXPECT_THAT(succeed(words), HasSubstr("2 questions"));
  const auto json = json_of(words);
  EXPECT_EQ(json["questions"], 2);
  EXPECT_EQ(json["log_probabilities"][0], json["log_probabilities"][1]);
  ASSERT_EQ(json["log_probabilities"][0].size(), 2U);
  const double first = json["log_probabilities"][0][0], second = json["log_probabilities"][0][1];
  EXPECT_EQ(json["acc"], first >= second ? 1 : 0);
  EXPECT_EQ(json["acc_norm"], first / 5 >= second / 2 ? 1 : 0);  // characters
  EXPECT_EQ(json["acc_bytes"], first / 5 >= second / 4 ? 1 : 0);
  for (const char* error : {"acc_stderr", "acc_norm_stderr", "acc_bytes_stderr"}) EXPECT_EQ(json[error], 0) << error;
  write_file_atomically(tiny.path("data.jsonl"), good + "{\"context\": \"the\"}\n");
  EXPECT_THAT(refused(words), HasSubstr("data.jsonl:2"));
}

}  // namespace
}  // namespace teratron::testing
