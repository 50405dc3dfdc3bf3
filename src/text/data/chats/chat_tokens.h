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

// The assistant's words are
// - the {% generation %} blocks of a template that has them, as transformers finds them; else
// - what an answer adds to the text before it with the beginning of the answer (add_generation_prompt), up to the
//   template's end of a turn, without the white space after that.
// A template of the second sort may write an answer otherwise once others follow, as Qwen 3's, which takes thoughts
// out. Each answer is a document of its own then, after the text that the model would answer to. A token with a byte of
// theirs is learned. Texts begin with the tokenizer's beginning of a text and end with its end, which is learned. Names
// of special tokens are those tokens. Safe to use from many threads.
class ChatTokenizer {
 public:
  // `now`: the date of all conversations, of which each is rendered several times.
  ChatTokenizer(Tokenizer tokenizer, ChatRules rules, ChatTemplate::Time now = std::chrono::system_clock::now());

  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Documents of an example; none: nobody answers. UserError, without the place: the template is missing or refuses the
  // messages, or does not say where answers begin.
  std::vector<ChatTokens> tokenize(const ChatExample& example) const;
  // The two answers of a pair, each a document that ends with it. Learned are its tokens from the first on that is not
  // the prompt's in both, as TRL counts; so both count the same text, though one may begin with a token that joins
  // prompt and answer. None: nobody answers. UserError, without the place: as tokenize; or the template writes an
  // answer of several turns otherwise than it stood in each of them.
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
