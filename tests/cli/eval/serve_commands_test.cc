// `teratron serve` from its start to its end, beside `generate` on the same checkpoint.
#include <fmt/ranges.h>
#include <httplib.h>

#include <cstring>

#include "cli/tiny_training.h"
#include "cli/weights/bert_folder.h"

namespace teratron::testing {
namespace {

Json wait_for_server(ChildProgram& server, const std::string& file) {
  wait_until(server, [&] { return fs::exists(file); });
  if (server.has_ended()) throw std::runtime_error(server.errors_so_far());
  return Json::parse(read_file(file));
}

void expect_texts_of_generate(const Words& layout) {
  const TinyTraining training(1000);
  succeed(training.command({"--train-iters", "2", "--save", training.path("run"), "--seq-length", "32"}));
  write_file_atomically(training.path("prompts.txt"), "the rank\nwaits\n");
  const std::vector<Json> texts = json_lines_of(
      succeed(with({"generate", "--load", training.path("run"), "--prompts", training.path("prompts.txt"),
                    "--num-samples", "2", "--max-new-tokens", "6", "--seed", "9", "--json", "-", "--prompt-logprobs"},
                   layout)));
  const std::string place = training.path("place.json");
  ChildProgram server(
      with({TERATRON_BINARY, "serve", "--load", training.path("run"), "--port", "0", "--json", place}, layout));
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
  ASSERT_EQ(texts.size(), 4U);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Json &made = texts[i], &scores = choices.at(i).at("logprobs").at("token_logprobs");
    EXPECT_EQ(choices.at(i).at("text"), made.at("prompt").get<std::string>() + made.at("text").get<std::string>());
    Json expected = made.at("prompt_logprobs");
    for (const Json& score : made.at("logprobs")) expected.push_back(score);
    EXPECT_EQ(scores, expected) << "to the last bit";
  }
  const Outcome second =
      run_teratron({"serve", "--load", training.path("run"), "--port", std::to_string(where.at("port").get<int>())});
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.errors, HasSubstr("cannot listen at 127.0.0.1:"));
  EXPECT_THAT(refused({"serve", "--load", training.path("run"), "--port", "0", "--context", "33"}),
              HasSubstr("--context 33 is more than the 32 positions"));
  ::kill(server.pid(), SIGTERM);
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("'run' is served at http://127.0.0.1:"));
  EXPECT_EQ(outcome.errors, "");
}

TEST(ServeCommand, MakesTheTextsOfGenerateAndEndsByASignal) { expect_texts_of_generate({}); }
TEST(ServeCommand, MakesThemOnTwoRanks) { expect_texts_of_generate({"--tp", "2"}); }

// A folder of sentence-transformers says how its vectors are made, and how long texts are.
TEST(ServeCommand, VectorsOfABertAreThoseOfEmbed) {
  const TemporaryFolder folder;
  const std::string sentence = folder / "sentence", place = folder / "place.json";
  TinyBertFolder({.name = "BertModel"}).write(sentence + "/0_Transformer");
  const auto module = [](int number, const char* kind) {
    return Json{{"idx", number},
                {"name", std::to_string(number)},
                {"path", fmt::format("{}_{}", number, kind)},
                {"type", fmt::format("sentence_transformers.models.{}", kind)}};
  };
  put_file(sentence + "/modules.json",
           Json{module(0, "Transformer"), module(1, "Pooling"), module(2, "Normalize")}.dump());
  make_folders(sentence + "/1_Pooling");
  put_file(sentence + "/1_Pooling/config.json", R"({"pooling_mode": "max"})");
  put_file(sentence + "/0_Transformer/sentence_bert_config.json", R"({"max_seq_length": 8, "do_lower_case": true})");
  const std::vector<std::string> texts = {"yes no", "maybe", "same other key what"};
  put_file(folder / "texts", fmt::format("{}\n", fmt::join(texts, "\n")));
  succeed({"embed", "--load", sentence, "--out", folder / "out.npy", folder / "texts"});
  const std::string file = read_file(folder / "out.npy");
  std::vector<float> expected(texts.size() * kTinyHidden);
  ASSERT_EQ(file.size(), 128 + expected.size() * sizeof(float));
  std::memcpy(expected.data(), file.data() + 128, expected.size() * sizeof(float));
  for (const char* context : {"0", "9"}) {
    const bool is_given = context[0] != '0';
    std::filesystem::remove(place);
    ChildProgram server({TERATRON_BINARY, "serve", "--load", sentence, "--port", "0", "--json", place, "--tp",
                         is_given ? "2" : "1", "--queue", "0", "--batch-size", "2", "--context", context});
    const Json where = wait_for_server(server, place);
    EXPECT_EQ(where.at("model"), "sentence");
    httplib::Client client("127.0.0.1", where.at("port").get<int>());
    const auto answer = client.Post("/v1/embeddings", Json{{"input", texts}}.dump(), "application/json");
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 200) << answer->body;
    const Json vectors = Json::parse(answer->body).at("data");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float value = vectors.at(i / kTinyHidden).at("embedding").at(i % kTinyHidden);
      EXPECT_NEAR(value, expected[i], 1e-6) << "sums have other orders in batches of other sizes, and over ranks";
    }
    const auto longer =
        client.Post("/v1/embeddings", Json{{"input", "yes no yes no yes no yes"}}.dump(), "application/json");
    ASSERT_TRUE(longer);
    EXPECT_EQ(longer->status, is_given ? 200 : 400) << "the flag replaces what the folder says";
    EXPECT_EQ(longer->body.find("more than 8 tokens") == std::string::npos, is_given) << longer->body;
    ::kill(server.pid(), SIGTERM);
    EXPECT_EQ(server.wait().exit_code, 0);
  }
  const Words serve = {"serve", "--load", sentence, "--port", "0"};
  EXPECT_THAT(refused(with(serve, {"--chat-template", "/nowhere"})),
              HasSubstr("--chat-template is of models that continue text, and the BERT in"));
  EXPECT_THAT(refused(with(serve, {"--prompt-tokens", "256"})), HasSubstr("--prompt-tokens is of models"));
  EXPECT_THAT(refused(with(serve, {"--context", "49"})), HasSubstr("--context 49 is more than the 48 positions"));
  put_file(sentence + "/0_Transformer/tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_THAT(refused({"serve", "--load", sentence, "--port", "0"}),
              HasSubstr("its tokenizer is cased; give an uncased one by --tokenizer DIR"));
}

TEST(ServeCommand, WrongFlagsAreRefused) {
  EXPECT_THAT(refused({"serve"}), HasSubstr("--load"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere", "--port", "70000"}), HasSubstr("--port"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere", "--dp", "2"}), HasSubstr("--dp"));
  EXPECT_THAT(refused({"serve", "--load", "/nowhere", "--host", ""}),
              HasSubstr("--host is empty; 127.0.0.1 is this machine alone"));
}

}  // namespace
}  // namespace teratron::testing
