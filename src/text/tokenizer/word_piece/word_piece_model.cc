#include "tokenizer/word_piece/word_piece_model.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/utf8.h"

namespace teratron {
namespace {

void validate_tokens(const WordPieceModel& model, std::string_view source) {
  if (model.tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw_user_error("{}: {} tokens are more than ids of 31 bits can number", source, model.tokens.size());
  }
  std::unordered_map<std::string_view, std::size_t> id_of;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    if (token.empty()) throw_user_error("{}: token {} is empty", source, id);
    if (!is_utf8(token)) throw_user_error("{}: token {} is not valid UTF-8", source, id);
    if (token.find('\n') != token.npos) throw_user_error("{}: token {} holds the end of a line", source, id);
    const auto [before, is_new] = id_of.emplace(token, id);
    if (!is_new) throw_user_error("{}: tokens {} and {} are both '{}'", source, before->second, id, token);
  }
}

}  // namespace

void validate(const WordPieceModel& model, std::string_view source) {
  validate_tokens(model, source);
  const auto count = static_cast<std::int32_t>(model.tokens.size());
  for (std::size_t i = 0; i < model.special.size(); ++i) {
    const std::int32_t id = model.special[i];
    if (id < 0 || id >= count) throw_user_error("{}: special token id {} of {} tokens", source, id, count);
    if (i > 0 && id <= model.special[i - 1]) throw_user_error("{}: special token ids do not ascend", source);
  }
  for (const std::int32_t id : {model.unknown, model.pad, model.classify, model.separate, model.mask}) {
    if (!std::ranges::binary_search(model.special, id)) {
      throw_user_error("{}: a WordPiece tokenizer needs [UNK], [PAD], [CLS], [SEP] and [MASK] among its special tokens",
                       source);
    }
  }
  if (model.prefix.empty()) throw_user_error("{}: the prefix of tokens that go on a word is empty", source);
  if (model.max_word_characters < 1) {
    throw_user_error("{}: words may have {} characters; at least 1 is needed", source, model.max_word_characters);
  }
}

std::string hash_of(const WordPieceModel& model) {
  Checksum checksum;
  const auto add = [&](const void* bytes, std::size_t size) {
    checksum.update({static_cast<const std::byte*>(bytes), size});
  };
  const auto add_text = [&](std::string_view text) {
    const std::uint64_t size = text.size();
    add(&size, sizeof size);
    add(text.data(), text.size());
  };
  // Every corpus' sidecar holds this hash, so the order stays. decode()'s clean-up decides no id.
  add_text("WordPiece, BERT's normalizer and words");
  for (const std::int32_t value :
       {std::int32_t{model.lower_case}, std::int32_t{model.strip_accents}, std::int32_t{model.split_chinese},
        model.max_word_characters, model.unknown, model.pad, model.classify, model.separate, model.mask}) {
    add(&value, sizeof value);
  }
  add_text(model.prefix);
  for (const std::string& token : model.tokens) add_text(token);
  add(model.special.data(), model.special.size() * sizeof(std::int32_t));
  return checksum.digest();
}

}  // namespace teratron
