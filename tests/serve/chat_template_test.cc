// Chat templates: where they are found, and the variables that they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "serve/text/chat_request.h"
#include "tokenizer/bpe/bpe_trainer.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;
using OrderedJson = nlohmann::ordered_json;

std::string rendered(const std::string& text, const std::string& content, ChatTemplate::Time now = {}) {
  return ChatTemplate({.text = text, .path = "form", .specials = {{"eos_token", "</s>"}}})
      .render(OrderedJson::array({{{"role", "user"}, {"content", content}}}), false, {}, now);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ChatTemplate, StripsTheWhiteSpaceOfPython) {
  const std::string strange = "\u00a0\u3000\x0b\x1f", text = "à\u00a0b";
  EXPECT_EQ(rendered("{{ messages[0].content | trim }}", strange + text + strange), text);
  EXPECT_EQ(rendered("{{ messages[0].content.strip() }}", strange + text + strange), text);
  EXPECT_EQ(rendered("{{ messages[0].content.lstrip() }}", strange + text + strange), text + strange);
  EXPECT_EQ(rendered("{{ messages[0].content.rstrip() }}", strange + text + strange), strange + text);
  EXPECT_EQ(rendered("[{{ messages[0].content.strip() }}]", strange), "[]");
  EXPECT_EQ(rendered("[{{ messages[0].content.strip() }}]", ""), "[]");
  EXPECT_EQ(rendered("{{ messages[0].content.strip('\\n') }}", "\n\n a \n"), " a ");
  EXPECT_EQ(rendered("{{ messages[0].content.strip('é') }}", "éaèé"), "aè");
}

TEST(ChatTemplate, HasSpecialTokensLineEndsAndTheDate) {
  EXPECT_EQ(rendered("a{{ bos_token }}{{ eos_token }}\r\nb\rc\r\n", ""), "a</s>\nb\nc");
  const ChatTemplate::Time now = std::chrono::system_clock::from_time_t(1'700'000'000);
  const std::time_t seconds = 1'700'000'000;
  std::array<char, 64> expected{};
  std::strftime(expected.data(), expected.size(), "%d %b %Y", std::localtime(&seconds));
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}", "", now), expected.data());
}

TEST(ChatTemplate, MessagesAreThoseThatTransformersPasses) {
  const auto passed = [](const char* message) {
    return messages_for_template(OrderedJson::array({OrderedJson::parse(message)})).at(0).dump();
  };
  EXPECT_EQ(passed(R"({"role":"a","content":null,"tool_calls":null})"), R"({"role":"a"})");
  EXPECT_EQ(passed(R"({"role":"a","reasoning":"r"})"),
            R"({"thinking":"r","role":"a","reasoning":"r","reasoning_content":"r"})");
  EXPECT_EQ(passed(R"({"reasoning_content":"c","thinking":"t"})"), R"({"thinking":"t","reasoning_content":"c"})");
}

TEST(ChatTemplate, FailuresSayWhatIsWrong) {
  EXPECT_THAT(message_of([] { rendered("{{ raise_exception('roles alternate') }}", ""); }),
              HasSubstr("template says: roles alternate"));
  EXPECT_THAT(message_of([] { rendered("{{ messages[0].content.nothing() }}", ""); }),
              HasSubstr("failed: line 1: 'str object' has no attribute 'nothing'"));
  EXPECT_THROW(rendered("{% for %}", ""), UserError);
  EXPECT_THROW(rendered("{% if true %}", ""), UserError);
  EXPECT_THAT(message_of([] { rendered("{{ 'a", ""); }), HasSubstr("'form' cannot be read"));
  EXPECT_THROW(rendered("\xff", ""), UserError);
  EXPECT_THROW(rendered(std::string(1 << 20, 'a'), ""), UserError);
}

TEST(ChatTemplate, HasTransformersVariables) {
  EXPECT_EQ(rendered("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ date is defined }}", ""),
            "TrueTrueFalseFalse");
}

class ChatFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    Tokenizer(train_bpe(std::vector<std::string_view>{"a b"}, {.vocab_size = 260})).save(folder());
  }
  std::filesystem::path folder() const { return folder_.path(); }
  void write(const char* name, const std::string& text) const { write_file_atomically(folder() / name, text); }
  ChatRules rules(const std::filesystem::path& given = {}) const {
    return find_chat_rules(folder(), {}, given, Tokenizer::load(folder()));
  }
  static std::string form_of(const ChatRules& rules) { return rules.form->render(OrderedJson::array(), true); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ChatFiles, TheFileComesBeforeTheConfiguration) {
  EXPECT_EQ(rules().form, nullptr);
  EXPECT_THAT(rules().why_none, HasSubstr("neither chat_template.jinja nor"));
  write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>", "chat_template": "of config{{ eos_token }}"})");
  EXPECT_EQ(form_of(rules()), "of config<|endoftext|>");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "1"}, {"name": "default", "template": "2"}]})");
  EXPECT_EQ(form_of(rules()), "2");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "1"}]})");
  EXPECT_THAT(rules().why_none, HasSubstr("\"default\": rag"));
  write("chat_template.jinja", "of file");
  EXPECT_EQ(form_of(rules()), "of file");
  write("given", "given");
  EXPECT_EQ(form_of(rules(folder() / "given")), "given");
  EXPECT_THROW(rules(folder() / "absent"), UserError);
  write("chat_template.jinja", "{% for %}");
  EXPECT_THAT(rules().why_none, HasSubstr("cannot be read"));
  write("given", "{% for %}");
  EXPECT_THROW(rules(folder() / "given"), UserError);
}

TEST_F(ChatFiles, ConversationsWithToolsHaveATemplateOfTheirOwn) {
  const TemplateExtras tools{.tools = OrderedJson::array({{{"name", "f"}}})};
  const auto written = [&](const TemplateExtras& extras) {
    return rules().form->render(OrderedJson::array(), true, extras);
  };
  const auto configure = [&](const std::string& of_tools) {
    write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": ")" + of_tools +
                                       R"("}, {"name": "default", "template": "plain"}]})");
  };
  configure("with {{ tools[0].name }}{% generation %}{% endgeneration %}");
  EXPECT_EQ(written({}), "plain");
  EXPECT_EQ(written(tools), "with f");
  EXPECT_FALSE(rules().form->marks_answers());
  EXPECT_TRUE(rules().form->marks_answers(tools));
  configure("{% for %}");
  EXPECT_EQ(written({}), "plain");
  EXPECT_THROW(written(tools), ChatTemplateError);
  std::filesystem::create_directory(folder() / "additional_chat_templates");
  write("additional_chat_templates/tool_use.jinja", "more{{ tools | length }}");
  write("chat_template.jinja", "file");
  EXPECT_EQ(written({}), "file");
  EXPECT_EQ(written(tools), "more1");
}

// As PreTrainedTokenizerBase.from_pretrained merges the files.
TEST_F(ChatFiles, NamesOfTokensAreThoseOfTransformers) {
  using Names = std::map<std::string, std::string>;
  const auto names = [&] { return find_chat_template(folder())->specials; };
  write("special_tokens_map.json", R"({"eos_token": "<map>", "pad_token": null})");
  write("tokenizer_config.json", R"({"eos_token": "<config>", "pad_token": "<pad>", "chat_template": ""})");
  EXPECT_EQ(names(), (Names{{"eos_token", "<map>"}, {"pad_token", "<pad>"}}));
  write("tokenizer_config.json", R"({"eos_token": "<config>", "added_tokens_decoder": {}, "chat_template": ""})");
  EXPECT_EQ(names(), (Names{{"eos_token", "<config>"}}));
  write("tokenizer_config.json", R"({"added_tokens_decoder": {}, "chat_template": "", "image_token": {"content": "<i>"},
                                     "add_bos_token": true, "extra_special_tokens": {"audio": "<a>"}})");
  EXPECT_EQ(names(), (Names{{"eos_token", "<map>"}, {"image_token", "<i>"}, {"audio", "<a>"}}));
}

TEST_F(ChatFiles, AnswersEndWhereTheModelSays) {
  EXPECT_TRUE(rules().ends.empty());
  write("config.json", R"({"eos_token_id": [7, 8]})");
  EXPECT_EQ(rules().ends, (std::vector<std::int32_t>{7, 8}));
  write("generation_config.json", R"({"eos_token_id": 5})");
  EXPECT_EQ(rules().ends, std::vector<std::int32_t>{5});
  write("generation_config.json", R"({"eos_token_id": [5, 6, -1, 1000000, "a"]})");
  EXPECT_EQ(rules().ends, (std::vector<std::int32_t>{5, 6}));
  write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_TRUE(rules().ends.empty());
  write("chat_template.jinja", "{% for m in messages %}{{ m.content }}\n<|endoftext|>{% endfor %}");
  EXPECT_EQ(rules().ends, std::vector<std::int32_t>{*Tokenizer::load(folder()).end_of_text()});
  write("generation_config.json", "[");
  EXPECT_THROW(rules(), UserError);
}

}  // namespace
}  // namespace teratron::testing
