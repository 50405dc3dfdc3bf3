// Tools in chats: what the template is given of them, and which words are learned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/message_of.h"
#include "data/chats/chat_reader.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes tools in JSON, calls with their arguments in JSON, and results.
constexpr const char* kToolForm =
    "{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %};{% endif %}"
    "{% if documents %}{% for d in documents %}{{ d.title }}{% endfor %};{% endif %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls %}{% set f = c.function if c.function is defined else c %}"
    "<{{ f.name }} {{ f.arguments | tojson }}>{% endfor %};\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

ChatTokenizer tools_tokenizer(const std::string& form) {
  return {byte_tokenizer(), {.form = std::make_shared<ChatTemplate>(ChatTemplateFile{.text = form, .path = "form"})}};
}

// Texts of an example's documents with the words to learn in brackets; bytes are tokens.
std::vector<std::string> learned_in(const std::vector<ChatTokens>& documents) {
  std::vector<std::string> texts;
  for (const ChatTokens& chat : documents) {
    std::string& text = texts.emplace_back();
    for (std::size_t i = 0; i < chat.ids.size(); ++i) {
      if (chat.learned[i] && (i == 0 || !chat.learned[i - 1])) text += '[';
      text += static_cast<char>(chat.ids[i]);
      if (chat.learned[i] && (i + 1 == chat.ids.size() || !chat.learned[i + 1])) text += ']';
    }
  }
  return texts;
}

std::vector<std::string> learned(const std::string& json, const std::string& form = kToolForm) {
  return learned_in(tools_tokenizer(form).tokenize(read_chat_example(json)));
}

constexpr const char* kTalk =
    R"("messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}])";

TEST(ChatTools, AreGivenToTheTemplateInTheOrderOfTheirKeys) {
  const std::string expected = "{\"z\": 1, \"a\": {\"y\": 2, \"b\": 3}};user:U;\nassistant:[A;]\n";
  for (const char* tools : {R"([{"z": 1, "a": {"y": 2, "b": 3}}])", R"("[{\"z\": 1, \"a\": {\"y\": 2, \"b\": 3}}]")"}) {
    EXPECT_THAT(learned(fmt::format("{{{}, \"tools\": {}}}", kTalk, tools)), ElementsAre(expected));
  }
  for (const char* none : {"null", "[]", "\"\"", "\"[]\""}) {
    EXPECT_THAT(learned(fmt::format("{{{}, \"tools\": {}}}", kTalk, none)), ElementsAre("user:U;\nassistant:[A;]\n"));
  }
  EXPECT_THAT(learned(fmt::format("{{{}, \"documents\": [{{\"title\": \"T\"}}]}}", kTalk)),
              ElementsAre("T;user:U;\nassistant:[A;]\n"));
  const auto pair = read_preference_example(R"({"prompt": "U", "chosen": [{"role": "assistant", "content": "B"}],
      "rejected": [{"role": "assistant", "content": "C"}], "tools": [{"n": 1}]})");
  EXPECT_THAT(learned_in(tools_tokenizer(kToolForm).tokenize(pair)),
              ElementsAre("{\"n\": 1};user:U;\nassistant:[B;]", "{\"n\": 1};user:U;\nassistant:[C;]"));
}

TEST(ChatTools, CallsAreLearnedAndTheirResultsAreNot) {
  const std::string expected = "user:U;\nassistant:[<add {\"b\": 1, \"a\": [2]}><now {}>;]\ntool:3;\nassistant:[A;]\n";
  for (const char* arguments : {R"({"b": 1, "a": [2]})", R"("{\"b\":1,\"a\":[2]}")"}) {
    for (const char* nothing : {"{}", "null", "\"\"", "\"{}\""}) {
      const std::string calls = fmt::format(
          R"([{{"type": "function", "function": {{"name": "add", "arguments": {}}}}}, {{"name": "now", "arguments": {}}}])",
          arguments, nothing);
      const std::string json = R"({"messages": [{"role": "user", "content": "U"},
          {"role": "assistant", "content": null, "tool_calls": )" +
                               calls + R"(},
          {"role": "tool", "tool_call_id": "c", "name": "add", "content": "3"}, {"role": "assistant", "content": "A"}]})";
      EXPECT_THAT(learned(json), ElementsAre(expected)) << json;
    }
  }
}

TEST(ChatTools, HalfOfASurrogatePairIsAReplacementCharacter) {
  EXPECT_THAT(learned(R"({"messages": [{"role": "user", "content": "U\ud83d"}, {"role": "assistant", "content": "",
                          "tool_calls": [{"name": "f", "arguments": "{\"a\": \"\\udC00\"}"}]}]})"),
              ElementsAre("user:U\uFFFD;\nassistant:[<f {\"a\": \"\uFFFD\"}>;]\n"));
}

TEST(ChatTools, TurnsOfCallsAreReadInShareGptsForm) {
  const std::string begin =
                        R"({"conversations": [{"from": "human", "value": "U"}, {"from": "function_call", "value": )",
                    end = R"(}, {"from": "observation", "value": "3"}, {"from": "gpt", "value": "A"}]})";
  EXPECT_THAT(learned(begin + R"("{\"name\": \"add\", \"arguments\": {\"a\": 1}}")" + end),
              ElementsAre("user:U;\nassistant:[<add {\"a\": 1}>;]\ntool:3;\nassistant:[A;]\n"));
  EXPECT_THAT(learned(begin + R"("[{\"name\": \"f\"}, {\"name\": \"g\"}]")" + end),
              ElementsAre("user:U;\nassistant:[<f {}><g {}>;]\ntool:3;\nassistant:[A;]\n"));
}

// As DeepSeek V3's, which puts texts together.
TEST(ChatTools, ATemplateThatWritesTextsAloneGetsTheTextsOfArguments) {
  const std::string form =
      "{% for m in messages %}{{ m.role + ':' }}{{ m.content }}{% for c in m.tool_calls %}"
      "{{ c.function.name + c.function.arguments }}{% endfor %};{% endfor %}"
      "{% if add_generation_prompt %}assistant:{% endif %}";
  const auto with = [](const char* arguments) {
    return fmt::format(R"({{"messages": [{{"role": "user", "content": "U"}}, {{"role": "assistant", "tool_calls":
                       [{{"function": {{"name": "f", "arguments": {}}}}}]}}]}})",
                       arguments);
  };
  EXPECT_THAT(learned(with(R"("{\"a\":1}")"), form), ElementsAre("user:U;assistant:[f{\"a\":1};]"));
  EXPECT_THAT(message_of<UserError>([&] { learned(with(R"({"a": 1})"), form); }), HasSubstr("template failed"));
}

// transformers leaves them out without a word.
TEST(ChatTools, AreRefusedWhereTheTemplateHasNoPlaceForThem) {
  const auto fault = [](const std::string& form, const std::string& more) {
    const std::string json =
        R"({"messages": [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A")" + more;
    return message_of<UserError>([&] { learned(json, form + "{% for m in messages %}{{ m.content }}{% endfor %}"); });
  };
  const std::string calls = R"(, "tool_calls": [{"name": "f"}]}]})";
  EXPECT_THAT(fault("", calls), HasSubstr("writes no tool_calls"));
  EXPECT_EQ(fault("{% if tool_calls %}{% endif %}", calls), kNoError);
  EXPECT_THAT(fault("", R"(}], "tools": [{"name": "f"}]})"), HasSubstr("writes no tools"));
  EXPECT_EQ(fault("{% if tools %}{% endif %}", R"(}], "tools": [{"name": "f"}]})"), kNoError);
  EXPECT_THAT(fault("", R"(}], "documents": [{"title": "T"}]})"), HasSubstr("writes no documents"));
}

TEST(ChatTools, TextsOfNoCallAreNone) {
  for (const char* none : {"[]", ""}) {
    const ChatExample example = read_chat_example(
        fmt::format(R"({{"messages": [{{"role": "assistant", "content": "B", "tool_calls": "{}"}}]}})", none));
    EXPECT_FALSE(example.messages[0].contains("tool_calls")) << example.messages;
  }
}

TEST(ChatTools, FaultsAreNamed) {
  const auto fault = [](const std::string& json) { return message_of<UserError>([&] { learned(json); }); };
  const auto beside = [&](const char* what) { return fault(fmt::format("{{{}, {}}}", kTalk, what)); };
  for (const char* tools : {"5", "[1]", "{}", "\"{}\"", "[[]]"}) {
    EXPECT_THAT(beside((std::string("\"tools\": ") + tools).c_str()), HasSubstr("\"tools\" is no list of objects"))
        << tools;
  }
  EXPECT_THAT(beside("\"tools\": \"find\""), HasSubstr("\"tools\" is not valid JSON"));
  EXPECT_THAT(beside("\"documents\": [\"a\"]"), HasSubstr("\"documents\" is no list of objects"));
  EXPECT_THAT(beside("\"functions\": [{\"name\": \"f\"}]"), HasSubstr("describe them as \"tools\""));
  EXPECT_THAT(fault(R"({"prompt": "a", "completion": "b", "tools": [{"name": "f"}]})"),
              HasSubstr("\"tools\" have no place"));
  EXPECT_THAT(fault(R"({"prompt": "a", "completion": "b", "documents": "[{\"title\": \"T\"}]"})"),
              HasSubstr("\"documents\" have no place"));
  const auto called = [&](const std::string& calls) {
    return fault(R"({"messages": [{"role": "assistant", "content": "", "tool_calls": )" + calls + "}]}");
  };
  EXPECT_THAT(called("{}"), HasSubstr("messages[0]'s tool_calls is no list of objects"));
  EXPECT_THAT(called("[{}]"), HasSubstr("tool_calls[0] has no name"));
  EXPECT_THAT(called(R"([{"function": 5}])"), HasSubstr("tool_calls[0] has no name"));
  for (const char* arguments : {"5", "[1]", "\"[1]\""}) {
    EXPECT_THAT(called(fmt::format(R"([{{"name": "f", "arguments": {}}}])", arguments)), HasSubstr("neither an object"))
        << arguments;
  }
  // Texts within texts, which the bounds of a line do not see.
  std::string wide = "{\\\"0\\\": 1";
  for (int i = 1; i < 501; ++i) wide += fmt::format(", \\\"{}\\\": 1", i);
  const auto with_text = [&](const std::string& text) {
    return called(R"([{"name": "f", "arguments": ")" + text + "\"}]");
  };
  EXPECT_THAT(with_text("{"), HasSubstr("messages[0]'s tool_calls[0].arguments is not valid JSON"));
  EXPECT_THAT(with_text(std::string(50000, '[')), HasSubstr("more than 100 deep"));
  EXPECT_THAT(with_text(wide + "}"), HasSubstr("an object of more than 500 members"));
  EXPECT_THAT(fault(R"({"conversations": [{"from": "function_call", "value": "f"}]})"),
              HasSubstr("call is not valid JSON"));
  EXPECT_THAT(fault(R"({"messages": [{"role": "assistant", "content": null}]})"), HasSubstr("has no text"));
}

}  // namespace
}  // namespace teratron::testing
