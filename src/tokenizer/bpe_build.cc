// From what the files spell to a checked model.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe_files.h"
#include "tokenizer/byte_alphabet.h"

namespace teratron {
namespace {

using IdOf = std::unordered_map<std::string_view, std::int32_t>;

// The text of each id.
std::vector<std::string_view> texts_by_id(const BpeSource& source) {
  // An added token may be listed in the vocabulary too, under the same id.
  std::vector<const BpeSource::Token*> tokens;
  std::unordered_map<std::string_view, std::int64_t> listed;
  for (const auto* list : {&source.vocabulary, &source.added}) {
    for (const BpeSource::Token& token : *list) {
      const auto [before, is_new] = listed.emplace(token.text, token.id);
      if (is_new) {
        tokens.push_back(&token);
      } else if (list == &source.vocabulary || before->second != token.id) {
        throw_user_error("{}: token '{}' is listed twice, with ids {} and {}", source.vocabulary_file, token.text,
                         before->second, token.id);
      }
    }
  }
  std::vector<std::string_view> texts(tokens.size());
  for (const BpeSource::Token* token : tokens) {
    if (token->text.empty()) throw_user_error("{}: the token with id {} is empty", source.vocabulary_file, token->id);
    if (token->id < 0 || std::cmp_greater_equal(token->id, texts.size())) {
      throw_user_error("{}: token '{}' has id {}, but the ids of {} tokens must be 0 to {} without gaps",
                       source.vocabulary_file, token->text, token->id, texts.size(), texts.size() - 1);
    }
    std::string_view& text = texts[static_cast<std::size_t>(token->id)];
    if (!text.empty()) {
      throw_user_error("{}: tokens '{}' and '{}' have the same id, {}", source.vocabulary_file, text, token->text,
                       token->id);
    }
    text = token->text;
  }
  return texts;
}

BpeMerge resolve(const BpeSource::Merge& merge, const IdOf& id_of, const BpeSource& source) {
  const auto id = [&](const std::string& text) {
    const auto found = id_of.find(text);
    if (found == id_of.end()) {
      throw_user_error(
          "{}, {} {}: the vocabulary and the merges disagree: '{}' is not in {}; are both from the same "
          "tokenizer, and complete?",
          source.merges_file, source.merge_unit, merge.number, text, source.vocabulary_file);
    }
    return found->second;
  };
  return {id(merge.left), id(merge.right), id(merge.left + merge.right)};
}

bool is_written_like_a_special_token(std::string_view text) {
  return text.size() > 2 &&
         ((text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']'));
}

}  // namespace

BpeModel build_bpe_model(const BpeSource& source) {
  const std::vector<std::string_view> texts = texts_by_id(source);
  IdOf id_of;
  for (std::size_t id = 0; id < texts.size(); ++id) id_of.emplace(texts[id], static_cast<std::int32_t>(id));

  BpeModel model;
  std::vector<bool> is_made(texts.size());
  for (const BpeSource::Merge& merge : source.merges) {
    model.merges.push_back(resolve(merge, id_of, source));
    is_made[static_cast<std::size_t>(model.merges.back().merged)] = true;
  }
  std::vector<bool> is_added(texts.size());
  for (const BpeSource::Token& token : source.added) is_added[static_cast<std::size_t>(token.id)] = true;

  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    const std::optional<std::string> bytes = from_alphabet(text);
    const bool is_byte = bytes && bytes->size() == 1;
    if (!is_made[id] && !is_byte && (is_added[id] || is_written_like_a_special_token(text))) {
      model.special.push_back(static_cast<std::int32_t>(id));
      model.tokens.emplace_back(text);
    } else if (bytes) {
      model.tokens.push_back(*bytes);
    } else {
      throw_user_error(
          "{}: token '{}' (id {}) has characters that stand for no byte; this is not a byte-level "
          "vocabulary as GPT-2's is",
          source.vocabulary_file, text, id);
    }
  }
  validate(model, source.vocabulary_file);
  return model;
}

}  // namespace teratron
