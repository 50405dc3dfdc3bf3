// Tools in chats over loopback, and the calls of an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/served_texts.h"
#include "serve/text/chat_answer.h"

namespace teratron::testing {
namespace {

// Writes tools in JSON, calls with their arguments in JSON, and results.
constexpr const char* kToolsForm =
    "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %};{% endif %}"
    "{% for d in documents or [] %}{{ d.title }};{% endfor %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %};{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

class ToolChats : public ::testing::Test {
 protected:
  static ChatRules rules() {
    return {
        .form = std::make_shared<ChatTemplate>(ChatTemplateFile{.text = kToolsForm, .path = "form", .specials = {}}),
        .why_none = "",
        .ends = {}};
  }
  // Whether a chat is the completion of `written`.
  void expect_written(const std::string& body, const std::string& written) const {
    const Reply reply = texts_.server.post("/v1/chat/completions", body);
    ASSERT_EQ(reply.status, 200) << body << reply.body;
    const Reply expected =
        texts_.server.complete({{"prompt", written}, {"max_tokens", 6}, {"seed", 4}, {"temperature", 1}});
    EXPECT_EQ(reply.choice().at("message").at("content"), expected.choice().at("text")) << body;
    EXPECT_EQ(reply.json.at("usage").at("prompt_tokens"), expected.json.at("usage").at("prompt_tokens")) << body;
  }
  void refused(const std::string& body, const std::string& param, const std::string& says) const {
    texts_.server.expect_refused("/v1/chat/completions", body, param, says);
  }
  static std::string with(const std::string& fields, const std::string& more = "") {
    return R"({"max_tokens": 6, "seed": 4, "messages": [{"role": "user", "content": "U"})" + more + "], " + fields +
           "}";
  }

  const TextServer texts_{{.positions = 400, .chat = rules()}};
};

constexpr const char* kTool = R"({"type": "function", "function": {"name": "f", "z": 1, "a": {"y": 2, "b": null}}})";

TEST_F(ToolChats, ToolsAreWrittenInTheOrderOfTheirKeys) {
  const std::string tools = R"("tools": [)" + std::string(kTool) + "]", talk = "user:U;assistant:";
  expect_written(with(tools), std::string(kTool) + ";" + talk);
  expect_written("\xEF\xBB\xBF" + with(tools), std::string(kTool) + ";" + talk);
  expect_written(with(tools + R"(, "tool_choice": "auto", "parallel_tool_calls": false)"),
                 std::string(kTool) + ";" + talk);
  expect_written(with(tools + R"(, "tool_choice": "none")"), talk);
  expect_written(with(R"("documents": [{"title": "T"}])"), "T;" + talk);
}

TEST_F(ToolChats, CallsAndTheirResultsAreWritten) {
  for (const char* arguments : {R"("{\"b\":1,\"a\":2}")", R"({"b": 1, "a": 2})"}) {
    const std::string calls =
        R"(, {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function":
           {"name": "f", "arguments": )" +
        std::string(arguments) + R"(}}]}, {"role": "tool", "tool_call_id": "c", "content": "3"})";
    expect_written(with(R"("n": 1)", calls), "user:U;assistant:<f {\"b\": 1, \"a\": 2}>;tool:3;assistant:");
  }
}

TEST_F(ToolChats, WrongOnesAreRefused) {
  for (const char* tools : {"5", "[5]", "\"[]\""}) {
    refused(with(R"("tools": )" + std::string(tools)), "tools", "list of objects");
  }
  for (const char* tool : {"{}", R"({"type": "function"})", R"({"type": "custom", "function": {"name": "f"}})",
                           R"({"type": "function", "function": {"name": 5}})"}) {
    refused(with(R"("tools": [)" + std::string(tool) + "]"), "tools", "a tool must be {\"type\": \"function\"");
  }
  for (const char* choice : {"\"required\"", R"({"type": "function", "function": {"name": "f"}})"}) {
    refused(with(R"("tool_choice": )" + std::string(choice)), "tool_choice", "auto or none");
  }
  refused(with(R"("documents": ["a"])"), "documents", "list of objects");
  refused(with(R"("functions": [{}])"), "functions", "leave it out");
  const auto called = [](const std::string& calls) {
    return with(R"("n": 1)", R"(, {"role": "assistant", "tool_calls": )" + calls + "}");
  };
  refused(called("[{}]"), "messages", "messages[1].tool_calls[0] has no name");
  refused(called(R"([{"function": {"name": "f", "arguments": "f"}}])"), "messages", "not valid JSON");
  refused(called("[]"), "messages", "content must be a string");
  std::string many = R"({"type": "function", "function": {"name": "f")";
  for (int i = 0; i < 501; ++i) many += ", \"" + std::to_string(i) + "\": 1";
  refused(with(R"("tools": [)" + many + "}}]"), "tools", "more than 500 members");
}

TEST(ToolCalls, AreFoundAtTheEndOfAnAnswer) {
  const auto found = [](const std::string& text) {
    const AnswerWithCalls answer = find_tool_calls(text);
    std::string shown = answer.content;
    for (const CalledTool& call : answer.calls) shown += "|" + call.name + call.arguments;
    return shown;
  };
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"b": "</x>", "a": 1}}</tool_call>)",
                    read = R"(|f{"b": "</x>", "a": 1})";
  EXPECT_EQ(found(call), read);
  EXPECT_EQ(found("Let me see. \n" + call + "\n" + call + "\n"), "Let me see." + read + read);
  EXPECT_EQ(found("<tool_call>\n{\"arguments\": {}, \"name\": \"f\"}\n</tool_call>"), "|f{}");
  for (const std::string text : {"", "a <tool_call", "<tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {}}",
                                 "<tool_call>f</tool_call>", "<tool_call>{\"name\": \"f\"}</tool_call>",
                                 "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
                                 "<tool_call>{\"name\": \"f\", \"arguments\": \"{}\"}</tool_call>", "</tool_call>"}) {
    EXPECT_EQ(found(text), text);
  }
  EXPECT_EQ(found(call + " and more"), call + " and more");
  EXPECT_EQ(found(call + "<tool_call>"), call + "<tool_call>");
  const auto nested = [](std::size_t depth) {
    return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  const auto call_with = [](const std::string& arguments) {
    return R"(<tool_call>{"name":"f","arguments":)" + arguments + "}</tool_call>";
  };
  for (const std::string arguments :
       {R"({"id":18446744073709551617,"x":1.50,"y":1e2})", R"({ "a" :"</tool_call>" , "b":["</tool_call>"]})",
        R"({"a":"\"</tool_call>\\"})"}) {
    EXPECT_EQ(found(call_with(arguments) + call_with(arguments)), "|f" + arguments + "|f" + arguments);
  }
  EXPECT_EQ(found(call_with(R"({"a":"\ud83d","b":"\ud83d\ude00"})")), R"(|f{"a":"\ufffd","b":"\ud83d\ude00"})");
  for (const std::string arguments : {R"({"a":NaN})", R"({"a":1,})", R"({"a":"</tool_call>)", R"({"a":"\ud8"})"}) {
    EXPECT_EQ(found(call_with(arguments)), call_with(arguments));
  }
  EXPECT_EQ(found(call_with(nested(900))), "|f" + nested(900));
  const std::string deep = call_with(nested(500000));  // no stack holds a copy of it
  EXPECT_TRUE(found(deep) == deep);
}

// Parts of a stream, cut anywhere, say what the whole answer says.
TEST(ToolCalls, StreamsHoldBackWhatMayBeACall) {
  const Tokenizer tokenizer = tokenizer_of_texts();
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const std::vector<std::string> texts = {"a < b <tool_ c", "so: " + call, call + "\n" + call,
                                          call + " no",     "a ",          "<tool_call>{"};
  for (const std::string& text : texts) {
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{9}}) {
      const CompletionRequest request{.prompts = {{1}}, .prompt_texts = {}, .stop_texts = {}, .most_calls = most};
      ChatAnswer answer(request, tokenizer, {.id = "i", .model = "m"});
      std::string content;
      Json calls = Json::array(), reason;
      const auto take = [&](const TextEvent& event) {
        for (const auto& part : answer.add(event)) {
          const Json choice = Json::parse(part.dump()).at("choices").at(0);
          content += choice.at("delta").value("content", "");
          for (Json one : choice.at("delta").value("tool_calls", Json::array())) {
            EXPECT_EQ(one.at("index"), calls.size());
            one.erase("index");
            calls.push_back(one);
          }
          if (!choice.at("finish_reason").is_null()) reason = choice.at("finish_reason");
        }
      };
      for (const char byte : text) take({.prompt = {}, .token = {}, .bytes = std::string(1, byte), .failure = {}});
      take({.prompt = {}, .token = {}, .end = GenerationEnd::kEndToken, .failure = {}});
      const Json whole = Json::parse(answer.whole().dump()).at("choices").at(0);
      const Json& message = whole.at("message");
      EXPECT_EQ(content, message.at("content").is_null() ? "" : message.at("content").get<std::string>()) << text;
      EXPECT_EQ(calls, message.value("tool_calls", Json::array())) << text;
      EXPECT_EQ(reason, whole.at("finish_reason")) << text;
      const std::size_t expected = std::min(most, find_tool_calls(text).calls.size());
      EXPECT_EQ(calls.size(), expected) << text;
      EXPECT_EQ(reason, expected > 0 ? "tool_calls" : "stop");
      if (expected == 0) {
        EXPECT_EQ(content, text);
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
