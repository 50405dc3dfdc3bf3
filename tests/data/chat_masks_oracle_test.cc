// The assistant's tokens in chats as transformers finds them.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "data/chats/chat_tokens.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

struct MaskFamily {
  ChatTokenizer marking, plain;  // a template with {% generation %} blocks, and without
};

TEST(ChatMasksOracle, TheAssistantsTokensAreThoseOfTransformers) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  const int status = run_oracle("chat_masks_as_transformers.py", {folder.path().string()}, folder / "log");
  ASSERT_EQ(status, 0) << read_file(folder / "log");
  std::map<std::string, MaskFamily> families;
  std::map<std::string, int> compared;
  std::ifstream cases(folder / "cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto one = nlohmann::ordered_json::parse(line);
    const std::string name = one.at("name");
    if (!families.contains(name)) {
      const Tokenizer tokens = Tokenizer::load(folder / name);
      families.emplace(
          name, MaskFamily{{tokens, find_chat_rules(folder / name, {}, {}, tokens)},
                           {tokens, find_chat_rules(folder / name, {}, folder / (name + ".plain.jinja"), tokens)}});
    }
    const auto ids = one.at("ids").get<std::vector<std::int32_t>>();
    const auto mask = one.at("mask").get<std::vector<int>>();
    const bool answers = std::ranges::count(mask, 1) > 0;
    for (const ChatTokenizer* const tokenizer : {&families.at(name).marking, &families.at(name).plain}) {
      const bool is_plain = tokenizer == &families.at(name).plain;
      if (is_plain && name == "lines") continue;  // its blocks hold white space of the template, too
      const auto documents = tokenizer->tokenize({.messages = one.at("messages")});
      ASSERT_EQ(documents.size(), answers ? 1U : 0U) << line;
      if (!answers) continue;
      EXPECT_EQ(documents[0].ids, ids) << line;
      EXPECT_EQ(documents[0].learned, std::vector<bool>(mask.begin(), mask.end())) << line << is_plain;
      ++compared[name];
    }
  }
  EXPECT_GE(compared["chatml"], 40);
  EXPECT_GE(compared["llama3"], 40);
  EXPECT_GE(compared["lines"], 20);
}

}  // namespace
}  // namespace teratron::testing
