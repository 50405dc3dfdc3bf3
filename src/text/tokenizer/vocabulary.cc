#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <functional>
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

SpecialTokens::SpecialTokens(std::span<const std::string> tokens, std::span<const std::int32_t> special) {
  for (const std::int32_t id : special) {
    const std::string& text = tokens[static_cast<std::size_t>(id)];
    entries_.push_back({text, id});
    const std::size_t first = static_cast<unsigned char>(text[0]);
    begins_[first] = true;
    if (goes_on_.empty()) goes_on_.resize(std::size_t{256} * 256);
    for (std::size_t second = 0; second < 256; ++second) {
      if (text.size() == 1 || static_cast<unsigned char>(text[1]) == second) goes_on_[first * 256 + second] = true;
    }
  }
  std::ranges::stable_sort(entries_, std::greater{}, [](const Entry& entry) { return entry.text.size(); });
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text) const {
  if (entries_.empty()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t first = static_cast<unsigned char>(text[i]);
    if (!begins_[first]) continue;
    if (i + 1 < text.size() && !goes_on_[first * 256 + static_cast<unsigned char>(text[i + 1])]) continue;
    for (const Entry& entry : entries_) {
      if (text.substr(i).starts_with(entry.text)) return Match{i, entry.text.size(), entry.id};
    }
  }
  return std::nullopt;
}

std::optional<std::int32_t> SpecialTokens::id_of(std::string_view text) const {
  const auto found = std::ranges::find(entries_, text, &Entry::text);
  if (found == entries_.end()) return std::nullopt;
  return found->id;
}

}  // namespace teratron
