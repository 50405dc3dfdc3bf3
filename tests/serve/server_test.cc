// Completions over loopback: the texts and numbers of `generate`, whatever is asked for beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "serve/served_texts.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

class Completions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { texts_ = new TextServer; }
  static void TearDownTestSuite() { delete texts_; }
  static const RunningServer& server() { return texts_->server; }

  static TextServer* texts_;
};

TextServer* Completions::texts_ = nullptr;

TEST_F(Completions, AreTheTextsOfGenerate) {
  std::mt19937 random(1);
  const std::vector<std::string> words = {"the rank", "a", "the layers wait for", "gradients of ranks sum"};
  for (int trial = 0; trial < 12; ++trial) {
    GenerationSettings settings{.max_new_tokens = static_cast<std::int64_t>(random() % 20)};
    settings.sampling = {.temperature = static_cast<double>(random() % 3) / 2,
                         .top_p = random() % 2 == 0 ? 1 : 0.8,
                         .seed = random() % 1000};
    std::vector<std::string> prompts;
    for (std::size_t count = 1 + random() % 3; count-- > 0;) prompts.push_back(words[random() % words.size()]);
    const auto samples = static_cast<std::uint32_t>(1 + random() % 3);
    const auto made = texts_->generate(prompts, samples, settings);
    const bool as_ids = random() % 2 == 0;
    Json request = {{"model", "tiny"},
                    {"max_tokens", settings.max_new_tokens},
                    {"n", samples},
                    {"temperature", settings.sampling.temperature},
                    {"seed", settings.sampling.seed},
                    {"top_p", settings.sampling.top_p}};
    request["prompt"] = prompts;
    if (as_ids) {
      request["prompt"] = Json::array();
      for (const std::string& prompt : prompts) request["prompt"].push_back(texts_->tokenizer.encode(prompt));
    }
    const Reply reply = server().complete(request);
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.json.at("choices").size(), made.size());
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(reply.choice(i).at("text"), made[i].text) << trial;
      EXPECT_EQ(reply.choice(i).at("index"), i);
      EXPECT_EQ(reply.choice(i).at("finish_reason"), made[i].end == GenerationEnd::kLength ? "length" : "stop");
      EXPECT_TRUE(reply.choice(i).at("logprobs").is_null());
      tokens += made[i].tokens.size();
    }
    EXPECT_EQ(reply.json.at("usage").at("completion_tokens"), tokens);
  }
}

// As lm-eval's local-completions asks: token ids, echo, and the likeliest token beside each.
TEST_F(Completions, EchoThePromptWithTheProbabilitiesOfGenerate) {
  const std::vector<std::string> prompts = {"the rank sums the gradients", "a"};
  const auto made = texts_->generate(prompts, 1, {.sampling = {.temperature = 0}, .max_new_tokens = 3});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto ids = texts_->tokenizer.encode(prompts[i]);
    const Reply reply = server().complete(
        {{"prompt", {ids}}, {"temperature", 0}, {"max_tokens", 3}, {"logprobs", 1}, {"echo", true}, {"seed", 1234}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.choice().at("text"), prompts[i] + made[i].text);
    const Json& scores = reply.choice().at("logprobs");
    std::vector<double> expected = made[i].prompt_scores;
    expected.insert(expected.end(), made[i].scores.begin(), made[i].scores.end());
    ASSERT_EQ(scores.at("token_logprobs").size(), expected.size() + 1);
    EXPECT_TRUE(scores.at("token_logprobs").at(0).is_null());
    EXPECT_TRUE(scores.at("top_logprobs").at(0).is_null());
    for (std::size_t at = 0; at < expected.size(); ++at) {
      EXPECT_EQ(scores.at("token_logprobs").at(at + 1).get<double>(), expected[at]) << "to the last bit";
      double most = -1e9;
      for (const auto& [token, value] : scores.at("top_logprobs").at(at + 1).items())
        most = std::max(most, value.get<double>());
      if (at + 1 < ids.size()) {
        EXPECT_GE(most, expected[at]);
      } else {
        EXPECT_EQ(most, expected[at]) << "a greedy token is the likeliest";
      }
    }
    EXPECT_EQ(scores.at("text_offset").at(0), 0);
    EXPECT_EQ(scores.at("text_offset").at(ids.size()), prompts[i].size());
  }
}

TEST_F(Completions, StreamsHaveTheSameTextAndScores) {
  const Json request = {
      {"prompt", {"the rank", "waits"}}, {"n", 2}, {"max_tokens", 12}, {"seed", 7}, {"logprobs", 2}, {"echo", true}};
  const Reply whole = server().complete(request);
  ASSERT_EQ(whole.status, 200) << whole.body;
  Json streamed = request;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const Reply reply = server().complete(streamed);
  ASSERT_EQ(reply.status, 200);
  std::vector<std::string> parts = stream_parts(reply.body);
  ASSERT_EQ(parts.back(), "[DONE]");
  parts.pop_back();
  EXPECT_EQ(Json::parse(parts.back()).at("usage"), whole.json.at("usage"));
  parts.pop_back();
  EXPECT_THAT(parts, ::testing::Each(HasSubstr(R"("usage":null)")));
  EXPECT_GT(parts.size(), 12U);
  std::vector<std::string> texts(4), reasons(4);
  std::vector<Json> scores(4, Json::array());
  for (const std::string& part : parts) {
    const Json choice = Json::parse(part).at("choices").at(0);
    const auto index = choice.at("index").get<std::size_t>();
    texts[index] += choice.at("text").get<std::string>();
    for (const Json& value : choice.at("logprobs").at("token_logprobs")) scores[index].push_back(value);
    EXPECT_TRUE(reasons[index].empty()) << "the reason comes last";
    if (!choice.at("finish_reason").is_null()) reasons[index] = choice.at("finish_reason");
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(Json(texts[i]), whole.choice(i).at("text"));
    EXPECT_EQ(Json(reasons[i]), whole.choice(i).at("finish_reason"));
    EXPECT_EQ(scores[i], whole.choice(i).at("logprobs").at("token_logprobs"));
  }
}

TEST_F(Completions, SayHowMuchOfThePromptWasComputed) {
  const std::int64_t reused = server().metric("teratron_prompt_tokens_reused_total"),
                     computed = server().metric("teratron_prompt_tokens_computed_total");
  const std::vector<int> begin = {9, 8, 7, 6, 5, 4, 3, 2, 1};  // two pieces, and one token
  std::vector<std::vector<int>> prompts(2, begin);
  prompts[0].insert(prompts[0].end(), {11, 12, 13});
  prompts[1].insert(prompts[1].end(), {14, 15});
  for (const std::int64_t cached : {0, 8 + 11}) {
    const Reply reply = server().complete({{"prompt", prompts}, {"max_tokens", 2}, {"ignore_eos", true}, {"n", 1}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Json& usage = reply.json.at("usage");
    EXPECT_EQ(usage.at("prompt_tokens"), 12 + 11);
    EXPECT_GE(usage.at("prompt_tokens_details").at("cached_tokens"), cached == 0 ? 8 : cached);
  }
  const std::int64_t more_reused = server().metric("teratron_prompt_tokens_reused_total") - reused;
  EXPECT_GE(more_reused, 8 + 8 + 11);
  EXPECT_EQ(server().metric("teratron_prompt_tokens_computed_total") - computed, 2 * (12 + 11) - more_reused);
}

TEST_F(Completions, SayHowMuchOfThePromptWasReusedWhereTheirFirstTokenIsTheLast) {
  const std::string end = std::to_string(*texts_->tokenizer.end_of_text());
  const std::vector<int> prompt = {31, 32, 33, 34, 35, 36, 37, 38, 39, 40};
  const Json request = {{"prompt", prompt}, {"max_tokens", 2}, {"logit_bias", {{end, 100}}}};
  server().complete(request);
  const Reply again = server().complete(request);
  ASSERT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.json.at("usage").at("completion_tokens"), 0);
  EXPECT_GE(again.json.at("usage").at("prompt_tokens_details").at("cached_tokens"), 8);
}

TEST_F(Completions, EndBeforeAStopText) {
  const Json request = {{"prompt", "the rank"}, {"max_tokens", 40}, {"seed", 3}, {"ignore_eos", true}};
  const auto text = server().complete(request).choice().at("text").get<std::string>();
  int tried = 0;
  for (std::size_t begin = 0; begin + 2 <= text.size() && tried < 5; begin += 3) {
    const std::string stop = text.substr(begin, 2);
    if (!std::ranges::all_of(stop, [](char byte) { return byte >= ' ' && byte < 0x7F; })) continue;
    ++tried;
    Json stopped = request;
    stopped["stop"] = {"never there", stop};
    stopped["logprobs"] = 0;
    const Reply reply = server().complete(stopped);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string kept = text.substr(0, text.find(stop));
    EXPECT_EQ(reply.choice().at("text"), kept);
    EXPECT_EQ(reply.choice().at("finish_reason"), "stop");
    for (const Json& offset : reply.choice().at("logprobs").at("text_offset")) EXPECT_LT(offset, kept.size());
  }
  EXPECT_GE(tried, 2);
}

TEST(CompletionEnds, AreThoseOfTheModelsConfiguration) {
  const Json request = {{"prompt", "the rank"}, {"max_tokens", 20}, {"temperature", 0}, {"seed", 1}, {"logprobs", 0}};
  const auto made =
      TextServer().generate({"the rank"}, 1, {.sampling = {.temperature = 0}, .max_new_tokens = 20}).front();
  const std::size_t last = std::min<std::size_t>(4, made.tokens.size() - 1);
  const auto first = static_cast<std::size_t>(std::ranges::find(made.tokens, made.tokens[last]) - made.tokens.begin());
  const TextServer texts({.ends = {made.tokens[last], 3}});
  const Reply reply = texts.server.complete(request);
  EXPECT_EQ(reply.choice().at("logprobs").at("tokens").size(), first) << reply.body;
  EXPECT_EQ(reply.choice().at("finish_reason"), "stop");
  Json on = request;
  on["ignore_eos"] = true;
  EXPECT_EQ(texts.server.complete(on).json.at("usage").at("completion_tokens"), 20);
}

TEST_F(Completions, ManyClientsGetWhatEachGetsAlone) {
  std::vector<Json> requests;
  std::vector<std::string> alone;
  for (int i = 0; i < 10; ++i) {
    requests.push_back(
        {{"prompt", std::string(static_cast<std::size_t>(1 + 3 * i % 20), 'a')}, {"seed", i}, {"max_tokens", 5 + i}});
    alone.push_back(server().complete(requests.back()).choice().at("text"));
  }
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    clients.emplace_back([&, i] {
      for (int time = 0; time < 3; ++time) {
        const Reply reply = server().complete(requests[i]);
        if (reply.status != 200) {
          ADD_FAILURE() << reply.body;
          continue;
        }
        EXPECT_EQ(reply.choice().at("text"), alone[i]);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(Completions, WrongRequestsAreRefusedWithTheirParameter) {
  const auto refused = [&](const std::string& body, const std::string& param, const std::string& says,
                           int status = 400) { server().expect_refused("/v1/completions", body, param, says, status); };
  refused("", "", "JSON");
  refused("{\"prompt\": \"a\"", "", "JSON");
  refused("[1, 2]", "", "object");
  refused(std::string(100000, '['), "", "");
  refused("{\"prompt\": \"\xff\"}", "", "not UTF-8: 0xff at byte 12");
  refused(R"({"prompt": 5})", "prompt", "a string");
  refused(R"({"prompt": []})", "prompt", "one id");
  refused(R"({"prompt": ["a", 1]})", "prompt", "token id");
  refused(R"({"prompt": [1, 1e9]})", "prompt", "token id");
  refused(R"({"prompt": [-1]})", "prompt", "token id");
  refused(R"({"prompt": [99999999999999999999]})", "prompt", "token id");
  refused(R"({"prompt": [[]]})", "prompt", "one id");
  refused(R"({"prompt": "a", "max_tokens": -1})", "max_tokens", "from 0");
  refused(R"({"prompt": "a", "max_tokens": "5"})", "max_tokens", "whole number");
  refused(R"({"prompt": "a", "max_tokens": 18446744073709551615})", "max_tokens", "from 0");
  refused(R"({"prompt": "a", "seed": 9223372036854775808})", "seed", "to 9223372036854775807");
  refused(R"({"prompt": "a", "temperature": -0.5})", "temperature", "from 0");
  for (const std::string number : {"NaN", "Infinity", "-Infinity"}) {
    refused(R"({"prompt": "a", "temperature": )" + number + "}", "", "no number of JSON");
  }
  refused(R"({"prompt": "a", "temperature": 1e400})", "temperature", "from 0");
  refused(R"({"prompt": "a", "temperature": true})", "temperature", "number");
  refused(R"({"prompt": "a", "top_p": 1.5})", "top_p", "to 1");
  refused(R"({"prompt": "a", "n": 0})", "n", "from 1");
  refused(R"({"prompt": ["a", "b"], "n": 10})", "n", "12");
  refused(R"({"prompt": "a", "n": 3, "best_of": 2})", "best_of", "from 3");
  refused(R"({"prompt": "a", "best_of": 2, "stream": true})", "best_of", "no stream can");
  refused(R"({"prompt": ["a", "b"], "best_of": 7})", "best_of", "12");
  refused(R"({"prompt": "a", "presence_penalty": 2.1})", "presence_penalty", "from -2 to 2");
  refused(R"({"prompt": "a", "frequency_penalty": "1"})", "frequency_penalty", "a number");
  refused(R"({"prompt": "a", "logit_bias": [1]})", "logit_bias", "an object");
  for (const char* id : {"-1", "267", "05", "1 ", "a", "", "4294967297"}) {
    refused(R"({"prompt": "a", "logit_bias": {")" + std::string(id) + R"(": 1}})", "logit_bias", "from 0 to 266");
  }
  refused(R"({"prompt": "a", "logit_bias": {"5": 101}})", "logit_bias", "logit_bias of 5 must be a number from -100");
  refused(R"({"prompt": "a", "logit_bias": {"5": "1"}})", "logit_bias", "from -100 to 100");
  refused(R"({"prompt": "a", "stop": [1]})", "stop", "strings");
  refused(Json{{"prompt", "a"}, {"stop", std::string(4097, 's')}}.dump(), "stop", "4096 are the most");
  refused(R"({"prompt": "a", "stream": 1})", "stream", "true or false");
  refused(R"({"prompt": "a", "logprobs": 1000})", "logprobs", "to 20");
  refused(R"({"prompt": "a", "maxtokens": 3})", "maxtokens", "no parameter");
  refused(R"({"prompt": "a", "model": "other"})", "model", "'tiny'", 404);
  refused(Json{{"prompt", std::string(200, 'x')}}.dump(), "prompt", "context holds 64");
  refused(R"({"prompt": "a", "max_tokens": 65})", "prompt", "max_tokens 65");
  EXPECT_EQ(server()
                .complete({{"prompt", "a"}, {"max_tokens", 64}, {"ignore_eos", true}})
                .json.at("usage")
                .at("completion_tokens"),
            64);
  EXPECT_EQ(server().complete({{"prompt", std::vector<int>(64, 1)}, {"max_tokens", 1}}).status, 200);
}

TEST_F(Completions, RefuseUnknownPathsAndModels) {
  EXPECT_EQ(server().get("/health").json.at("status"), "ok");
  EXPECT_EQ(server().get("/v1/models").json.at("data").at(0).at("id"), "tiny");
  EXPECT_EQ(server().get("/v1/models/tiny").json, server().get("/v1/models").json.at("data").at(0));
  EXPECT_EQ(server().get("/v1/models/other").json.at("error").at("code"), "model_not_found");
  EXPECT_EQ(server().get("/v1/nothing").status, 404);
  EXPECT_EQ(server().get("/v1/nothing").json.at("error").at("type"), "not_found_error");
  EXPECT_EQ(server().get("/v1/completions").status, 405);
  EXPECT_THAT(server().get("/v1/completions").message(), HasSubstr("does not take GET"));
  EXPECT_EQ(server().post("/v1/chat/completions", R"({"messages": []})").json.at("error").at("code"),
            "chat_not_supported");
  EXPECT_EQ(server().post("/v1/embeddings", R"({"input": "a"})").json.at("error").at("param"), "model");
  const Reply large = server().post("/v1/completions", std::string((8U << 20) + 1, ' '));
  EXPECT_TRUE(large.status == 413 || large.status == 0) << large.status << large.body;  // 0: it hung up first
}

TEST(ServeNames, OfOtherBytesThanUtf8AreShown) {
  TextServer texts({.server = {.port = 0, .api_key = "", .model_name = "tiny\xff"}});
  EXPECT_EQ(texts.server.get("/v1/models").json.at("data").at(0).at("id"), "tiny\uFFFD");
}

TEST(ServeKey, IsAskedForButByHealth) {
  TextServer texts({.server = {.port = 0, .api_key = "secret", .model_name = "tiny"}});
  const auto with_key = [](const std::string& key) { return httplib::Headers{{"Authorization", key}}; };
  for (const char* key : {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "Bearersecret"}) {
    const Reply reply = texts.server.post("/v1/completions", R"({"prompt": "a"})", with_key(key));
    EXPECT_EQ(reply.status, 401) << key;
    EXPECT_EQ(reply.json.at("error").at("code"), "invalid_api_key");
    EXPECT_EQ(texts.server.get("/metrics", with_key(key)).status, 401);
  }
  for (const char* key : {"Bearer secret", "bearer secret", "BEARER secret"}) {
    EXPECT_EQ(texts.server.post("/v1/completions", R"({"prompt": "a"})", with_key(key)).status, 200) << key;
  }
  EXPECT_EQ(texts.server.get("/health").status, 200);
}

}  // namespace
}  // namespace teratron::testing
