// Checks the content of files and makes a model of it.
#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/byte_alphabet.h"

namespace teratron {
namespace {

using IdOf = std::unordered_map<std::string_view, std::int32_t>;

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

}  // namespace

BpeModel build_bpe_model(const BpeSource& source) {
  const std::vector<std::string_view> texts = texts_by_id(source.vocabulary, source.added, source.vocabulary_file);
  IdOf id_of;
  for (std::size_t id = 0; id < texts.size(); ++id) id_of.emplace(texts[id], static_cast<std::int32_t>(id));

  BpeModel model{.add_prefix_space = source.add_prefix_space, .end_of_text = source.end_of_text};
  std::vector<bool> is_made(texts.size());
  for (const BpeSource::Merge& merge : source.merges) {
    model.merges.push_back(resolve(merge, id_of, source));
    is_made[static_cast<std::size_t>(model.merges.back().merged)] = true;
  }
  std::vector<bool> is_added(texts.size());
  for (const ListedToken& token : source.added) is_added[static_cast<std::size_t>(token.id)] = true;

  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    const std::optional<std::string> bytes = from_alphabet(text);
    const bool is_byte = bytes && bytes->size() == 1;
    if (is_added[id] && (is_made[id] || is_byte)) {
      throw_user_error(
          "{}: added token '{}' is an ordinary token of the vocabulary too, which transformers would find within "
          "words; "
          "leave it out of the added tokens",
          source.vocabulary_file, text);
    }
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
