// Rules of a model's chats: its template, and the tokens that end an answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/chats/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct ChatRules {
  std::shared_ptr<const ChatTemplate> form;  // nullptr: the model has none
  std::string why_none;                      // the reason if there is none, for messages
  std::vector<std::int32_t> ends;            // tokens that end an answer, beside the tokenizer's end of a text
};

// Rules of the model in `folder` with a tokenizer in `tokenizer`. `given`: the template's file; empty: the tokenizer's
// own. Answers end at the model's end_tokens_of(), at the tokenizer's end of a text, and at the special token that the
// template writes after an answer. A template of the tokenizer that cannot be read counts as none.
// UserError: `given` cannot be read; as end_tokens_of().
ChatRules find_chat_rules(const std::filesystem::path& folder, const std::filesystem::path& tokenizer,
                          const std::filesystem::path& given, const Tokenizer& tokens);

}  // namespace teratron
