// Chats over loopback: what a template writes, continued as a completion of that text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "serve/served_texts.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTemplate =
    "{%- for message in messages -%}\n"
    "{%- if message.role == 'tool' -%}{{ raise_exception('no tools, please') }}{%- endif -%}\n"
    "<{{ message['role'] }}>{{ message['content'] | trim }}|\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}<assistant>{%- endif -%}\n";

ChatRules rules_of(const std::string& text, std::vector<std::int32_t> ends = {}) {
  return {.form = std::make_shared<ChatTemplate>(ChatTemplateFile{.text = text, .path = "form", .specials = {}}),
          .why_none = "",
          .ends = std::move(ends)};
}

// The "usage" of an answer, without the tokens that came from other texts' caches.
Json tokens_of(const Json& answer) {
  Json usage = answer.at("usage");
  usage.erase("prompt_tokens_details");
  return usage;
}

// Text of a conversation by kTemplate.
std::string written(const Json& messages) {
  std::string text;
  for (const Json& message : messages) {
    text += "<" + message.at("role").get<std::string>() + ">" + message.at("content").get<std::string>() + "|";
  }
  return text + "<assistant>";
}

class Chats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { texts_ = new TextServer({.positions = 96, .chat = rules_of(kTemplate)}); }
  static void TearDownTestSuite() { delete texts_; }
  static const RunningServer& server() { return texts_->server; }
  static Reply chat(const Json& request) { return server().post("/v1/chat/completions", request.dump()); }
  static Json user(const std::string& text) { return Json::array({{{"role", "user"}, {"content", text}}}); }

  static TextServer* texts_;
};

TextServer* Chats::texts_ = nullptr;

TEST_F(Chats, AreCompletionsOfWhatTheTemplateWrites) {
  std::mt19937 random(1);
  const std::vector<std::string> words = {"the rank", "", "é\u4e16界", "sums\r\nthe \"rank\"", "<user>"};
  for (int trial = 0; trial < 12; ++trial) {
    Json messages = Json::array();
    for (std::size_t count = 1 + random() % 3; count-- > 0;) {
      messages.push_back({{"role", random() % 2 == 0 ? "user" : "assistant"}, {"content", words[random() % 5]}});
    }
    Json settings = {{"n", 1 + random() % 3}, {"seed", random() % 100}, {"max_tokens", random() % 12}};
    if (random() % 2 == 0) settings["stop"] = "e";
    if (random() % 2 == 0) settings["presence_penalty"] = 1.5;
    if (random() % 2 == 0) settings["frequency_penalty"] = -1;
    if (random() % 2 == 0) settings["logit_bias"] = {{"101", 2}};
    Json request = settings, completion = settings;
    request["messages"] = messages;
    completion["prompt"] = written(messages);
    const Reply reply = chat(request), expected = server().complete(completion);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json.at("object"), "chat.completion");
    EXPECT_EQ(tokens_of(reply.json), tokens_of(expected.json));
    ASSERT_EQ(reply.json.at("choices").size(), expected.json.at("choices").size());
    for (std::size_t i = 0; i < reply.json.at("choices").size(); ++i) {
      const Json message = {{"role", "assistant"}, {"content", expected.choice(i).at("text")}, {"refusal", nullptr}};
      EXPECT_EQ(reply.choice(i).at("message"), message);
      EXPECT_EQ(reply.choice(i).at("index"), i);
      EXPECT_EQ(reply.choice(i).at("finish_reason"), expected.choice(i).at("finish_reason"));
    }
  }
}

TEST_F(Chats, TakeContentInParts) {
  const Json parts = Json::array({{{"type", "text"}, {"text", "the"}}, {{"type", "text"}, {"text", "rank"}}});
  const Json settings = {{"seed", 3}, {"max_completion_tokens", 5}};
  Json request = settings, whole = settings;
  request["messages"] =
      Json::array({{{"role", "user"}, {"content", parts}, {"tool_calls", nullptr}, {"annotations", Json::array()}}});
  whole["messages"] = user("the\nrank");
  EXPECT_EQ(chat(request).choice(), chat(whole).choice());
}

// As clients send it that cut texts of UTF-16.
TEST_F(Chats, HalfOfASurrogatePairIsAReplacementCharacter) {
  Json request = {{"messages", user("a\uFFFDb")}, {"max_tokens", 5}, {"seed", 1}, {"logprobs", true}};
  std::string half = request.dump();
  half.replace(half.find("\uFFFD"), 3, "\\ud83d");
  const Reply reply = server().post("/v1/chat/completions", half);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json.at("choices"), chat(request).json.at("choices"));
}

TEST_F(Chats, StreamTheRoleThenTheText) {
  Json request = {{"messages", user("the rank")}, {"n", 2}, {"max_tokens", 9}, {"seed", 7}, {"logprobs", true}};
  const Reply whole = chat(request);
  ASSERT_EQ(whole.status, 200) << whole.body;
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  std::vector<std::string> parts = stream_parts(chat(request).body);
  ASSERT_EQ(parts.back(), "[DONE]");
  parts.pop_back();
  EXPECT_EQ(tokens_of(Json::parse(parts.back())), tokens_of(whole.json));
  EXPECT_TRUE(Json::parse(parts.back()).at("choices").empty());
  parts.pop_back();
  std::vector<std::string> texts(2);
  std::vector<Json> scores(2, Json::array()), reasons(2);
  std::vector<bool> has_begun(2, false);
  for (const std::string& part : parts) {
    const Json json = Json::parse(part);
    EXPECT_EQ(json.at("object"), "chat.completion.chunk");
    EXPECT_TRUE(json.at("usage").is_null());
    const Json& choice = json.at("choices").at(0);
    const auto index = choice.at("index").get<std::size_t>();
    if (!has_begun[index]) {
      EXPECT_EQ(choice.at("delta"), (Json{{"role", "assistant"}, {"content", ""}}));
      has_begun[index] = true;
      continue;
    }
    EXPECT_TRUE(reasons[index].is_null()) << "the reason comes last";
    reasons[index] = choice.at("finish_reason");
    texts[index] += choice.at("delta").value("content", "");
    if (choice.at("logprobs").is_null()) continue;
    for (const Json& score : choice.at("logprobs").at("content")) scores[index].push_back(score);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(Json(texts[i]), whole.choice(i).at("message").at("content"));
    EXPECT_EQ(reasons[i], whole.choice(i).at("finish_reason"));
    EXPECT_EQ(scores[i], whole.choice(i).at("logprobs").at("content"));
  }
}

// A stop text over two tokens is known to be one at its second.
TEST_F(Chats, TokensOfAStopTextAreNotTheMessages) {
  Json request = {{"messages", user("the rank")}, {"max_tokens", 30}, {"logprobs", true}, {"temperature", 2}};
  int stopped = 0;
  for (int seed = 0; seed < 12; ++seed) {
    request["seed"] = seed;
    const Json all = chat(request).choice().at("logprobs").at("content");
    if (all.size() < 6) continue;
    const auto text_of = [&](std::size_t i) { return all.at(i).at("token").get<std::string>(); };
    if (text_of(4).starts_with("bytes:") || text_of(5).starts_with("bytes:")) continue;
    Json ended = request;
    ended["stop"] = text_of(4) + text_of(5).substr(0, 1);
    const Reply reply = chat(ended);
    if (reply.choice().at("finish_reason") != "stop") continue;
    ++stopped;
    EXPECT_LE(reply.choice().at("logprobs").at("content").size(), 4U) << ended;
  }
  EXPECT_GT(stopped, 3);
}

TEST_F(Chats, HaveTheProbabilitiesOfCompletions) {
  const Json settings = {{"seed", 5}, {"max_tokens", 12}, {"ignore_eos", true}};
  Json request = settings, completion = settings;
  request.update({{"messages", user("the layers")}, {"logprobs", true}, {"top_logprobs", 3}});
  completion.update({{"prompt", written(user("the layers"))}, {"logprobs", 3}});
  const Json content = chat(request).choice().at("logprobs").at("content");
  const Json scores = server().complete(completion).choice().at("logprobs");
  ASSERT_EQ(content.size(), 12U);
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json& score = content[i];
    EXPECT_EQ(score.at("logprob"), scores.at("token_logprobs").at(i));
    EXPECT_EQ(score.at("token"), scores.at("tokens").at(i));
    ASSERT_EQ(score.at("top_logprobs").size(), 3U);
    double last = 0;
    for (const Json& top : score.at("top_logprobs")) {
      EXPECT_EQ(top.at("logprob"), scores.at("top_logprobs").at(i).at(top.at("token").get<std::string>()));
      EXPECT_LE(top.at("logprob"), last);
      last = top.at("logprob");
    }
    const auto bytes = score.at("bytes").get<std::vector<std::uint8_t>>();
    const std::string text(bytes.begin(), bytes.end());
    if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyz ") == std::string::npos) {
      EXPECT_EQ(Json(text), score.at("token"));
    }
  }
}

TEST_F(Chats, EndAtTheTokensOfTheRules) {
  const Json request = {
      {"messages", user("a")}, {"max_tokens", 30}, {"seed", 2}, {"ignore_eos", true}, {"logprobs", true}};
  const Reply whole = chat(request);
  const Json& tokens = whole.choice().at("logprobs").at("content");
  const auto bytes = tokens.at(7).at("bytes").get<std::vector<std::uint8_t>>();
  const auto end = texts_->tokenizer.encode(std::string(bytes.begin(), bytes.end()));
  ASSERT_EQ(end.size(), 1U);
  TextServer ending({.positions = 96, .chat = rules_of(kTemplate, {287, end.front()})});
  Json ends = request;
  ends.erase("ignore_eos");
  const Reply reply = reply_of(ending.server.client().Post("/v1/chat/completions", ends.dump(), "application/json"));
  std::size_t first = 0;
  while (tokens[first].at("bytes") != tokens[7].at("bytes")) ++first;
  const Json& kept = reply.choice().at("logprobs").at("content");
  ASSERT_LE(kept.size(), first);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], tokens[i]);
  EXPECT_EQ(reply.choice().at("finish_reason"), "stop");
}

TEST_F(Chats, WrongRequestsAreRefusedWithTheirParameter) {
  const auto refused = [&](const std::string& body, const std::string& param, const std::string& says) {
    server().expect_refused("/v1/chat/completions", body, param, says);
  };
  const auto with_message = [](const std::string& message) { return R"({"messages": [)" + message + "]}"; };
  const auto with = [](const std::string& parameter) {
    return R"({"messages": [{"role": "user", "content": "a"}], )" + parameter + "}";
  };
  refused("{}", "messages", "one message or more");
  refused(R"({"messages": []})", "messages", "one message or more");
  refused(R"({"messages": "hello"})", "messages", "one message or more");
  refused(with_message("5"), "messages", "messages[0] must be an object");
  refused(with_message("{}"), "messages", "role");
  refused(with_message(R"({"role": 5, "content": "a"})"), "role", "string");
  refused(with_message(R"({"role": "king", "content": "a"})"), "messages", "'king'");
  refused(with_message(R"({"role": "user"})"), "messages", "messages[0].content");
  refused(with_message(R"({"role": "user", "content": {"a": 1}})"), "messages", "content must be a string");
  refused(with_message(R"({"role": "user", "content": [1]})"), "messages", "a part of messages[0].content");
  refused(with_message(R"({"role": "user", "content": [{"type": "image_url"}]})"), "messages", "'image_url'");
  refused(with_message(R"({"role": "user", "content": "a", "function_call": {"name": "f"}})"), "function_call",
          "no parameter");
  refused(with_message(R"({"role": "tool", "content": "a"})"), "messages", "template says: no tools, please");
  for (const std::string type : {"json_object", "json_schema"}) {
    refused(with(R"("response_format": {"type": ")" + type + "\"}"), "response_format", "of type '" + type + "'");
  }
  refused(with(R"("response_format": "text")"), "response_format", "an object");
  refused(with(R"("logit_bias": {"267": 1})"), "logit_bias", "from 0 to 266");
  refused(with(R"("modalities": ["audio"])"), "modalities", "leave it out");
  refused(with(R"("service_tier": "priority")"), "service_tier", "leave it out");
  refused(with(R"("metadata": 5)"), "metadata", "must be an object");
  refused(with(R"("reasoning_effort": "high")"), "reasoning_effort", "no parameter");
  refused(with(R"("prompt": "a")"), "prompt", "no parameter");
  refused(with(R"("echo": true)"), "echo", "no parameter");
  refused(with(R"("logprobs": 3)"), "logprobs", "true or false");
  refused(with(R"("top_logprobs": 3)"), "top_logprobs", "needs logprobs");
  refused(with(R"("logprobs": true, "top_logprobs": 21)"), "top_logprobs", "to 20");
  refused(with(R"("max_tokens": 3, "max_completion_tokens": 3)"), "max_completion_tokens", "one of them");
  refused(with(R"("max_completion_tokens": -3)"), "max_completion_tokens", "from 0");
  refused(with(R"("max_tokens": 96)"), "messages", "context holds 96");
  refused(with(R"("max_completion_tokens": 96)"), "messages", "with max_completion_tokens 96; shorten");
  refused(with(R"("temperature": "hot")"), "temperature", "number");
  refused(with(R"("stream_options": {})"), "stream_options", "needs stream");
  refused(Json{{"messages", user(std::string(3000, 'x'))}}.dump(), "messages", "context holds 96");
  // Hostile ones: nested deeply, bytes that are no UTF-8, 100,000 messages.
  refused(with_message(std::string(200000, '[') + std::string(200000, ']')), "", "");
  refused(with_message(std::string(900, '[') + std::string(900, ']')), "messages", "must be an object");
  refused(with_message("{\"role\": \"user\", \"content\": \"\xff\"}"), "", "");
  // Clients say something about themselves, and ask for nothing.
  for (const char* field :
       {R"("metadata": {"a": "b"}, "store": true, "user": "u", "safety_identifier": "s", "service_tier": "auto")",
        R"("prompt_cache_key": "k", "prompt_cache_retention": "24h", "prediction": null, "audio": null)",
        R"("tools": [], "functions": [], "tool_choice": "auto", "function_call": "none", "parallel_tool_calls": true)",
        R"("modalities": ["text"], "response_format": {"type": "text"}, "logit_bias": {}, "n": null)"}) {
    EXPECT_EQ(server().post("/v1/chat/completions", with(std::string(R"("max_tokens": 1, )") + field)).status, 200)
        << field;
  }
  const std::string message = R"({"role": "user", "content": "a"})";
  std::string many = message;
  for (int i = 1; i < 100000; ++i) many += "," + message;
  refused(with_message(many), "messages", "100000 entries");
}

}  // namespace
}  // namespace teratron::testing
