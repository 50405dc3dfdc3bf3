// `teratron serve` from its start to its end, beside `generate` on the same checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <sstream>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json wait_for_server(ChildProgram& server, const std::string& file) {
  while (!std::filesystem::exists(file)) {
    if (server.has_ended()) throw std::runtime_error(server.errors_so_far());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Json::parse(read_file(file));
}

void expect_texts_of_generate(const Words& layout) {
  const TinyTraining training(1000);
  succeed(training.command({"--train-iters", "2", "--save", training.path("run"), "--seq-length", "32"}));
  write_file_atomically(training.path("prompts.txt"), "the rank\nwaits\n");
  const auto in_layout = [&](Words words) {
    words.insert(words.end(), layout.begin(), layout.end());
    return words;
  };
  std::istringstream lines(succeed(
      in_layout({"generate", "--load", training.path("run"), "--prompts", training.path("prompts.txt"), "--num-samples",
                 "2", "--max-new-tokens", "6", "--seed", "9", "--json", "-", "--prompt-logprobs"})));
  const std::string place = training.path("place.json");
  ChildProgram server(
      in_layout({TERATRON_BINARY, "serve", "--load", training.path("run"), "--port", "0", "--json", place}));
  const Json where = wait_for_server(server, place);
  EXPECT_EQ(where.at("model"), "run");
  httplib::Client client("127.0.0.1", where.at("port").get<int>());
  const Json request = {
      {"model", "run"}, {"prompt", {"the rank", "waits"}}, {"n", 2}, {"max_tokens", 6}, {"seed", 9}, {"echo", true},
      {"logprobs", 0}};
  const auto answer = client.Post("/v1/completions", request.dump(), "application/json");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json choices = Json::parse(answer->body).at("choices");
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json made = Json::parse(line), scores = choices.at(count).at("logprobs").at("token_logprobs");
    EXPECT_EQ(choices.at(count).at("text"), made.at("prompt").get<std::string>() + made.at("text").get<std::string>());
    Json expected = made.at("prompt_logprobs");
    for (const Json& score : made.at("logprobs")) expected.push_back(score);
    EXPECT_EQ(scores, expected) << "to the last bit";
  }
  EXPECT_EQ(count, 4U);
  const Outcome second =
      run_teratron({"serve", "--load", training.path("run"), "--port", std::to_string(where.at("port").get<int>())});
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.errors, HasSubstr("cannot listen at 127.0.0.1:"));
  ::kill(server.pid(), SIGTERM);
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("'run' is served at http://127.0.0.1:"));
  EXPECT_EQ(outcome.errors, "");
}

TEST(ServeCommand, MakesTheTextsOfGenerateAndEndsByASignal) { expect_texts_of_generate({}); }
TEST(ServeCommand, MakesThemOnTwoRanks) { expect_texts_of_generate({"--tp", "2"}); }

TEST(ServeCommand, WrongFlagsAreRefused) {
  EXPECT_THAT(refused({"serve"}), HasSubstr("--load"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere", "--port", "70000"}), HasSubstr("--port"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere", "--dp", "2"}), HasSubstr("--dp"));
}

}  // namespace
}  // namespace teratron::testing
