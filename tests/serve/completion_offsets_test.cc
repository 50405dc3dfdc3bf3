// Where in the text of a completion its tokens begin ("text_offset").
#include <gtest/gtest.h>

#include "serve/served_texts.h"

namespace teratron::testing {
namespace {

std::string after_characters(const std::string& text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && count > 0) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80);
    --count;
  }
  return text.substr(at);
}

// Also behind bytes that are no character, and where the model was given a token that the text lacks.
TEST(CompletionOffsets, AreWhereTheTextOfTokensBegins) {
  const TextServer texts;
  const auto open = texts.tokenizer.encode("\xC3").front(), letter = texts.tokenizer.encode("t").front();
  const std::vector<std::pair<Json, std::vector<int>>> prompts = {
      {Json::array({open, letter, open, open, letter}), {0, 1, 2, 3, 4}}, {"\u00e9t", {0, 0, 1}}, {"", {0}}};
  for (const auto& [prompt, offsets] : prompts) {
    for (const int seed : {1, 2, 3, 4}) {
      const Reply reply = texts.server.complete({{"prompt", prompt},
                                                 {"max_tokens", 30},
                                                 {"logprobs", 0},
                                                 {"echo", true},
                                                 {"seed", seed},
                                                 {"temperature", 2},
                                                 {"stop", "he"}});
      ASSERT_EQ(reply.status, 200) << reply.body;
      const Json &text = reply.choice().at("text"), &scores = reply.choice().at("logprobs");
      const std::size_t asked = offsets.size();
      ASSERT_GE(scores.at("text_offset").size(), asked);
      for (std::size_t i = 0; i < asked; ++i) EXPECT_EQ(scores.at("text_offset").at(i), offsets[i]) << prompt;
      for (std::size_t i = asked; i < scores.at("tokens").size(); ++i) {
        const auto token = scores.at("tokens").at(i).get<std::string>();
        if (token.starts_with("bytes:") || token == "<|endoftext|>") continue;
        const std::string rest = after_characters(text.get<std::string>(), scores.at("text_offset").at(i));
        EXPECT_TRUE(rest.starts_with(token) || token.starts_with(rest))
            << text << " token " << i << " '" << token << "'";
        EXPECT_FALSE(rest.empty()) << text << " token " << i;
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing
