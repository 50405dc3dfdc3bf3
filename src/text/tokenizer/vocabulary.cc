#include "tokenizer/vocabulary.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace teratron {

std::vector<std::string_view> texts_by_id(std::span<const ListedToken> vocabulary, std::span<const ListedToken> added,
                                          std::string_view file) {
  std::vector<const ListedToken*> tokens;
  std::unordered_map<std::string_view, std::int64_t> listed;
  for (const auto list : {vocabulary, added}) {
    for (const ListedToken& token : list) {
      const auto [before, is_new] = listed.emplace(token.text, token.id);
      if (is_new) {
        tokens.push_back(&token);
      } else if (list.data() == vocabulary.data() || before->second != token.id) {
        throw_user_error("{}: token '{}' is listed twice, with ids {} and {}", file, token.text, before->second,
                         token.id);
      }
    }
  }
  std::vector<std::string_view> texts(tokens.size());
  for (const ListedToken* token : tokens) {
    if (token->text.empty()) throw_user_error("{}: the token with id {} is empty", file, token->id);
    if (token->id < 0 || std::cmp_greater_equal(token->id, texts.size())) {
      throw_user_error("{}: token '{}' has id {}, but the ids of {} tokens must be 0 to {} without gaps", file,
                       token->text, token->id, texts.size(), texts.size() - 1);
    }
    std::string_view& text = texts[static_cast<std::size_t>(token->id)];
    if (!text.empty()) {
      throw_user_error("{}: tokens '{}' and '{}' have the same id, {}", file, text, token->text, token->id);
    }
    text = token->text;
  }
  return texts;
}

bool is_written_like_a_special_token(std::string_view text) {
  return text.size() > 2 &&
         ((text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']'));
}

}  // namespace teratron
