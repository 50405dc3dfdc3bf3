// Conversations as transformers writes them, by templates of published kinds: text, token ids, and refusals.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "oracle/python.h"
#include "serve/text/chat_request.h"

namespace teratron::testing {
namespace {

struct Family {
  Tokenizer tokenizer;
  ChatRules rules;
};

TEST(ChatOracle, ConversationsAreTransformers) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("chats_as_transformers.py", {folder.path().string()}, folder / "log");
  ASSERT_EQ(status, 0) << read_file(folder / "log");
  std::map<std::string, Family> families;
  std::map<std::string, int> compared, refused;
  std::ifstream cases(folder / "cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto one = nlohmann::ordered_json::parse(line);
    const std::string name = one.at("name");
    if (!families.contains(name)) {
      Tokenizer tokenizer = Tokenizer::load(folder / name);
      ChatRules rules = find_chat_rules(folder / name, {}, {}, tokenizer);
      ASSERT_NE(rules.form, nullptr) << name << ": " << rules.why_none;
      families.emplace(name, Family{std::move(tokenizer), std::move(rules)});
    }
    const auto& [tokenizer, rules] = families.at(name);
    const std::string shown = name + ": " + one.at("messages").dump();
    try {
      const std::string text = rules.form->render(one.at("messages"), one.at("begins"));
      ASSERT_FALSE(one.contains("error")) << shown;
      EXPECT_EQ(nlohmann::json(text).dump(), nlohmann::json(one.at("text").get<std::string>()).dump()) << shown;
      EXPECT_EQ(tokenizer.encode(text, SpecialText::kToken), one.at("ids").get<std::vector<std::int32_t>>()) << shown;
      ++compared[name];
    } catch (const ChatTemplateError& error) {
      ASSERT_TRUE(one.contains("error")) << shown << error.what();
      EXPECT_EQ(error.what(), "the model's chat template says: " + one.at("error").get<std::string>());
      ++refused[name];
    }
  }
  EXPECT_EQ(families.size(), 12U);
  for (const auto& [name, _] : families) EXPECT_GE(compared[name], 20) << name;
  EXPECT_GE(refused["llama2"], 2);
  const auto end_of = [&](const char* name) {
    const auto& [tokenizer, rules] = families.at(name);
    return rules.ends.empty() ? "" : std::string(tokenizer.bytes_of(rules.ends.back()));
  };
  EXPECT_EQ(end_of("phi"), "<|end|>");
  EXPECT_EQ(end_of("gemma"), "<end_of_turn>");
  EXPECT_EQ(end_of("chatml"), "<|im_end|>");
  EXPECT_EQ(end_of("llama2"), "</s>");
}

}  // namespace
}  // namespace teratron::testing
