// Tokens of chats, and which of them a model learns: the assistant's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "data/chats/chat_example.h"
#include "data/chats/chat_rules.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct ChatTokens {
  std::vector<std::int32_t> ids;
  std::vector<bool> learned;  // of each token
};

// Finds the assistant's words of a conversation, which are learned:
// - the {% generation %} blocks of a template that has them, as transformers finds them; else
// - the text that an answer adds to the text that asks for it (add_generation_prompt), up to the template's end of a
//   turn, without the white space after that.
// A token is learned if one of its bytes is the assistant's. Texts begin with the tokenizer's beginning of a text and
// end with its end, which is learned. Names of special tokens are those tokens.
//
// A template without such blocks may rewrite an answer when others follow: Qwen 3's removes its thoughts. Then each
// answer is a document of its own, after the text that asks for it. Safe to use from many threads.
class ChatTokenizer {
 public:
  // `now`: the date of all conversations, of which each is rendered several times.
  ChatTokenizer(Tokenizer tokenizer, ChatRules rules, ChatTemplate::Time now = std::chrono::system_clock::now());

  const Tokenizer& tokenizer() const { return tokenizer_; }
  // The documents of an example; none: it has no answer. UserError, without file and line: the template is missing,
  // refuses the messages, or does not show where answers begin.
  std::vector<ChatTokens> tokenize(const ChatExample& example) const;
  // The two answers of a pair, each in a document that ends with it. In both, tokens are learned from the same index
  // on, as in TRL: the lower one of their first tokens that are not the prompt's. So both learn the same text, even if
  // a token of one joins prompt and answer. None: an answer is missing. UserError, without file and line: as above; or
  // the template rewrites the earlier turns of an answer when others follow.
  std::vector<ChatTokens> tokenize(const std::array<ChatExample, 2>& pair) const;

 private:
  std::vector<ChatText> texts_of(const ChatExample& example) const;
  std::vector<ChatText> texts_by_prefixes(const ChatExample& example, const std::vector<std::size_t>& answers) const;
  ChatTokens tokens_of(const ChatText& chat) const;
  ChatTokens continued(const ChatExample& example) const;

  Tokenizer tokenizer_;
  ChatRules rules_;
  ChatTemplate::Time now_;
  bool ends_turns_ = false;  // the template writes more than white space after an answer
};

}  // namespace teratron
