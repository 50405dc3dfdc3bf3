// `teratron generate` with many prompts: files and standard input, stop texts, samples, long prompts.

#include <algorithm>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class GenerateCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    training_ = new TinyTraining(1000);
    succeed(training_->command({"--train-iters", "4", "--save", training_->path("run"), "--seq-length", "16"}));
    write_file_atomically(training_->path("prompts.txt"), "the rank\r\n\na\nthe layer sums the gradient\n \nwaits");
  }
  static void TearDownTestSuite() { delete training_; }

  static std::string path(const std::string& name) { return training_->path(name); }
  static Words generate(const Words& more) {
    return with({"generate", "--load", path("run"), "--ignore-end-of-text", "--max-new-tokens", "8"}, more);
  }
  static std::vector<Json> lines_of(const Words& more) {
    return json_lines_of(succeed(with(generate(more), {"--json", "-"})));
  }

  static TinyTraining* training_;
};

TinyTraining* GenerateCommands::training_ = nullptr;

const Words kPromptTexts = {"the rank", "a", "the layer sums the gradient", "waits"};

TEST_F(GenerateCommands, ContinueEveryPromptOfAFileAsOneByOneInAnyBatchAndLayout) {
  const Words drawn = {"--prompts", path("prompts.txt"), "--num-samples", "2", "--temperature", "0.9"};
  const std::vector<Json> all = lines_of(drawn);
  ASSERT_EQ(all.size(), 8U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at("prompt"), kPromptTexts[i / 2]);
    EXPECT_EQ(all[i].at("prompt_index"), i / 2);
    EXPECT_EQ(all[i].at("sample_index"), i % 2);
    EXPECT_EQ(all[i].at("logprobs").size(), 8U);
    EXPECT_EQ(all[i].at("finish_reason"), "length");
    if (i % 2 == 1) {
      EXPECT_NE(all[i].at("tokens"), all[i - 1].at("tokens"));
    }
  }
  for (const char* batch : {"1", "3"}) EXPECT_EQ(lines_of(with(drawn, {"--batch-size", batch})), all);
  for (const Words& layout : {Words{"--tp", "2"}, Words{"--pp", "2"}}) {
    const std::vector<Json> there = lines_of(with(drawn, layout));
    ASSERT_EQ(there.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(there[i].at("tokens"), all[i].at("tokens"));
  }
  const Words greedy = {"--temperature", "0"};
  const std::vector<Json> likeliest = lines_of(with(greedy, {"--prompts", path("prompts.txt")}));
  for (std::size_t i = 0; i < kPromptTexts.size(); ++i) {
    EXPECT_EQ(lines_of(with(greedy, {"--prompt", kPromptTexts[i]})).front().at("tokens"), likeliest[i].at("tokens"));
  }
}

TEST_F(GenerateCommands, ReadStandardInputAndWriteFilesAndTextInOrder) {
  const Words words = generate({"--prompts", path("prompts.txt"), "--temperature", "0", "--json", path("out.jsonl")});
  const std::string shown = succeed(words);
  std::size_t at = 0;
  const std::vector<Json> lines = json_lines(path("out.jsonl"));
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("prompt"), kPromptTexts[i]);
    const std::string text =
        fmt::format("--- prompt {} ---\n{}{}\n", i + 1, kPromptTexts[i], lines[i].at("text").get<std::string>());
    EXPECT_EQ(shown.substr(at, text.size()), text);
    at += text.size();
  }
  EXPECT_EQ(at, shown.size());
  std::string shell = TERATRON_BINARY;
  for (const std::string& word : generate({"--prompts", "-", "--temperature", "0"})) shell += " '" + word + "'";
  const Outcome piped = ChildProgram({"sh", "-c", shell + " < '" + path("prompts.txt") + "'"}).wait();
  EXPECT_EQ(piped.output, shown) << piped.errors;
}

TEST_F(GenerateCommands, EndBeforeAStopTextThatTokensCutApart) {
  const Words words = {"--prompt", "the rank", "--max-new-tokens", "40"};
  const Json whole = lines_of(words).front();
  const auto text = whole.at("text").get<std::string>();
  const auto is_plain = [](const std::string& part) {
    return std::ranges::all_of(part, [](char byte) { return byte >= ' ' && byte < 0x7F; });
  };
  // An untrained model's tokens are mostly of one byte, so two are of two tokens.
  int tried = 0;
  for (std::size_t begin = 0; begin + 2 <= text.size() && tried < 6; ++begin) {
    const std::string stop = text.substr(begin, 2);
    if (!is_plain(stop)) continue;
    ++tried;
    const std::string kept = text.substr(0, text.find(stop));
    const Json stopped = lines_of(with(words, {"--stop", "never there", "--stop=" + stop})).front();
    EXPECT_EQ(stopped.at("text"), kept) << stop;
    EXPECT_EQ(stopped.at("finish_reason"), "stop");
    EXPECT_LT(stopped.at("tokens").size(), whole.at("tokens").size());
    EXPECT_EQ(succeed(generate(with(words, {"--stop=" + stop}))), "the rank" + kept + "\n") << "streamed";
  }
  EXPECT_GE(tried, 3);
}

TEST_F(GenerateCommands, RefuseALongPromptOrCutItAndSayWhatWasLost) {
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += i < 20 ? " the" : " a";
  EXPECT_THAT(refused(generate({"--prompt", prompt})),
              AllOf(HasSubstr("40 tokens"), HasSubstr("context holds 16"), HasSubstr("--truncate-prompt")));
  write_file_atomically(path("long.jsonl"), "{\"prompt\": \"a\"}\n{\"text\": \"" + prompt + "\"}\n");
  EXPECT_THAT(refused(generate({"--prompts", path("long.jsonl")})), HasSubstr("prompt 2 has 40 tokens"));
  const auto token_of = [](const char* text) {
    return lines_of({"--prompt", text}).front().at("prompt_tokens").front().get<std::int32_t>();
  };
  for (const char* side : {"left", "right"}) {
    const std::vector<Json> lines = lines_of({"--prompts", path("long.jsonl"), "--truncate-prompt", side});
    EXPECT_EQ(lines[0].at("prompt_tokens_removed"), 0);
    EXPECT_EQ(lines[0].at("context_moves"), 0);
    EXPECT_EQ(lines[1].at("prompt_tokens_removed"), 24);
    const std::int32_t kept = token_of(side == std::string("left") ? " a" : " the");
    EXPECT_EQ(lines[1].at("prompt_tokens"), Json(std::vector<std::int32_t>(16, kept)));
    EXPECT_EQ(lines[1].at("context_moves"), 1);
  }
}

TEST_F(GenerateCommands, GiveTheProbabilitiesOfAPromptWhereAsked) {
  const Json line = lines_of({"--prompt", "the rank waits", "--prompt-logprobs", "--max-new-tokens", "0"}).front();
  EXPECT_EQ(line.at("prompt_logprobs").size(), line.at("prompt_tokens").size());
  EXPECT_TRUE(line.at("prompt_logprobs").front().is_null());
  for (std::size_t i = 1; i < line.at("prompt_logprobs").size(); ++i) EXPECT_LT(line.at("prompt_logprobs")[i], 0.0);
  EXPECT_EQ(line.at("text"), "");
  EXPECT_FALSE(lines_of({"--prompt", "a"}).front().contains("prompt_logprobs"));
}

TEST_F(GenerateCommands, BeginPromptsAsTheTokenizersFilesDo) {
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("begins")});
  Json tokenizer = Json::parse(read_file(path("begins/tokenizer.json")));
  const std::string token = tokenizer.at("added_tokens").front().at("content");
  const std::int32_t id = tokenizer.at("added_tokens").front().at("id");
  const Json beginning = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json second = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  tokenizer["post_processor"] = {{"type", "TemplateProcessing"},
                                 {"single", {beginning, text}},
                                 {"pair", {beginning, text, second}},
                                 {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
  write_file_atomically(path("begins/tokenizer.json"), tokenizer.dump());
  for (const std::string& prompt : {std::string("the rank waits"), token + "the rank waits"}) {
    const Json line = json_lines_of(succeed({"generate", "--load", path("begins"), "--prompt", prompt,
                                             "--max-new-tokens", "1", "--json", "-"}))
                          .front();
    std::vector<std::int32_t> expected = lines_of({"--prompt", "the rank waits"}).front().at("prompt_tokens");
    expected.insert(expected.begin(), id);
    EXPECT_EQ(line.at("prompt_tokens").get<std::vector<std::int32_t>>(), expected);
  }
}

// Folders of Hugging Face and runs that began with one have such files.
TEST_F(GenerateCommands, EndAtTheTokensOfTheModelsConfiguration) {
  const Words greedy = {"--prompt", "the rank", "--temperature", "0"};
  const Json whole = lines_of(greedy).front();
  const Json end = whole.at("tokens").at(2);
  std::size_t kept = 0;
  while (whole.at("tokens").at(kept) != end) ++kept;
  succeed({"convert", "--from", "teratron", "--to", "hf", path("run"), path("ends")});
  const auto ends_of = [&](const std::string& folder, const Words& more = {}) {
    return json_lines_of(
               succeed(with(with({"generate", "--load", path(folder), "--max-new-tokens", "8", "--json", "-"}, greedy),
                            more)))
        .front();
  };
  Json config = Json::parse(read_file(path("ends/config.json")));
  config["eos_token_id"] = {end, 1};
  write_file_atomically(path("ends/config.json"), config.dump());
  EXPECT_EQ(ends_of("ends").at("tokens").size(), kept);
  EXPECT_EQ(ends_of("ends").at("finish_reason"), "end_of_text");
  EXPECT_EQ(ends_of("ends", {"--ignore-end-of-text"}).at("tokens"), whole.at("tokens"));
  succeed({"convert", "--from", "hf", "--to", "teratron", path("ends"), path("kept")});
  EXPECT_EQ(ends_of("kept").at("tokens").size(), kept);
  write_file_atomically(path("ends/generation_config.json"), R"({"eos_token_id": null})");
  EXPECT_EQ(ends_of("ends").at("tokens"), whole.at("tokens")) << "the other file does not count then";
  write_file_atomically(path("ends/generation_config.json"), Json{{"eos_token_id", end}}.dump());
  succeed({"convert", "--from", "hf", "--to", "teratron", path("ends"), path("back")});
  EXPECT_EQ(ends_of("back").at("tokens").size(), kept);
}

TEST_F(GenerateCommands, WarnOfAPipeThatIsNotRead) {
  std::string shell = TERATRON_BINARY;
  for (const std::string& word : generate({})) shell += " '" + word + "'";
  const auto errors = [&](const std::string& line) { return ChildProgram({"sh", "-c", line}).wait().errors; };
  EXPECT_THAT(errors("echo 'the rank' | " + shell), HasSubstr("note: standard input is not read; --prompts -"));
  EXPECT_THAT(errors(shell + " < '" + path("prompts.txt") + "'"), HasSubstr("standard input is not read"));
  for (const std::string& line : {shell + " < /dev/null", "sleep 0 | " + shell, "echo a | " + shell + " --prompt the",
                                  "echo a | " + shell + " --prompts -"}) {
    EXPECT_THAT(errors(line), Not(HasSubstr("standard input is not read"))) << line;
  }
}

TEST_F(GenerateCommands, ContinueAnEmptyPromptAsTheBeginningOfADocument) {
  write_file_atomically(path("empty.jsonl"), "{\"prompt\": \"\"}\n");
  const Json line = lines_of({"--prompts", path("empty.jsonl"), "--temperature", "0"}).front();
  EXPECT_EQ(line.at("prompt_tokens").size(), 1U);
  EXPECT_EQ(line.at("tokens"), lines_of({"--temperature", "0"}).front().at("tokens"));
}

TEST_F(GenerateCommands, NameAllThatIsWrongAtOnce) {
  EXPECT_THAT(refused(generate({"--prompt", "a", "--prompts", "b", "--stop", "", "--repetition-penalty", "0",
                                "--num-samples", "0", "--presence-penalty", "3", "--frequency-penalty", "-3"})),
              AllOf(HasSubstr("6 faults"), HasSubstr("--presence-penalty is 3"), HasSubstr("--frequency-penalty is -3"),
                    HasSubstr("--prompts"), HasSubstr("--stop"), HasSubstr("--repetition-penalty"),
                    HasSubstr("--num-samples")));
  EXPECT_THAT(refused(generate({"--prompt", "a", "--prompt-logprobs"})),
              HasSubstr("--prompt-logprobs are written to --json LINES"));
  for (const Words& more :
       {Words{"--prompt-logprobs"}, Words{"--batch-size", "4"}, Words{"--truncate-prompt", "left"}}) {
    EXPECT_THAT(refused(generate(with({"--chat"}, more))), HasSubstr("leave out --prompt-logprobs")) << more[0];
  }
  write_file_atomically(path("none.txt"), "\n\r\n");
  EXPECT_THAT(refused(generate({"--prompts", path("none.txt")})), HasSubstr("holds no text"));
}

}  // namespace
}  // namespace teratron::testing
