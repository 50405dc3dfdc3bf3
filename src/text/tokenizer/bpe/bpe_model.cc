#include "tokenizer/bpe/bpe_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "base/files/checksum.h"
#include "tokenizer/bpe/byte_alphabet.h"

namespace teratron {
namespace {

void validate_ids(const BpeModel& model, std::string_view source) {
  if (model.tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw_user_error("{}: {} tokens are more than ids of 31 bits can number", source, model.tokens.size());
  }
  const auto count = static_cast<std::int32_t>(model.tokens.size());
  for (const BpeMerge& merge : model.merges) {
    for (const std::int32_t id : {merge.left, merge.right, merge.merged}) {
      if (id < 0 || id >= count) throw_user_error("{}: a merge names id {} of {} tokens", source, id, count);
    }
  }
  for (const auto* list : {&model.special, &model.found}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::int32_t id = (*list)[i];
      if (id < 0 || id >= count) throw_user_error("{}: special token id {} of {} tokens", source, id, count);
      if (i > 0 && id <= (*list)[i - 1]) throw_user_error("{}: special token ids do not ascend", source);
    }
  }
}

// Marks the tokens of bytes as known. UserError: a byte has none, or two.
void validate_bytes(const BpeModel& model, std::string_view source, std::vector<bool>& known) {
  if (model.pipeline.is_sentence_piece()) {
    check(model.byte_tokens.size() == 256, "SentencePiece's tokens of bytes are complete");
    return;
  }
  std::array<bool, 256> has_byte{};
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    if (token.size() != 1 || known[id]) continue;
    bool& seen = has_byte[static_cast<unsigned char>(token[0])];
    if (seen) throw_user_error("{}: two tokens for byte {:#04x}", source, static_cast<unsigned char>(token[0]));
    seen = known[id] = true;
  }
  for (std::size_t byte = 0; byte < has_byte.size(); ++byte) {
    if (!has_byte[byte] && !is_never_in_utf8(static_cast<std::uint8_t>(byte))) {
      throw_user_error("{}: no token for byte {:#04x} ('{}'); byte-level BPE needs one for each byte of UTF-8", source,
                       byte, to_alphabet(std::string(1, static_cast<char>(byte))));
    }
  }
}

// The origin that each token needs: a byte, a merge, or a list of added ones.
void validate_origins(const BpeModel& model, std::string_view source) {
  if (model.tokens.empty()) throw_user_error("{} has no tokens at all; copy or make the tokenizer again", source);
  std::vector<bool> known(model.tokens.size());
  for (const auto* list : {&model.special, &model.found}) {
    for (const std::int32_t id : *list) known[static_cast<std::size_t>(id)] = true;
  }
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) throw_user_error("{}: token {} is empty", source, id);
  }
  validate_bytes(model, source, known);
  if (model.pipeline.is_sentence_piece() || model.pipeline.ignore_merges) return;
  for (const BpeMerge& merge : model.merges) known[static_cast<std::size_t>(merge.merged)] = true;
  for (std::size_t id = 0; id < known.size(); ++id) {
    if (!known[id]) {
      throw_user_error(
          "{}: the vocabulary and the merges disagree: no merge makes token {} ('{}'); are both from the "
          "same tokenizer, and complete?",
          source, id, to_alphabet(model.tokens[id]));
    }
  }
}

}  // namespace

std::optional<std::int32_t> BpeModel::special_id(std::string_view text) const {
  const auto found_id =
      std::ranges::find_if(special, [&](std::int32_t id) { return tokens[static_cast<std::size_t>(id)] == text; });
  return found_id == special.end() ? std::nullopt : std::optional(*found_id);
}

std::array<std::int32_t, 256> tokens_of_bytes(const BpeModel& model) {
  std::array<std::int32_t, 256> of_byte;
  of_byte.fill(-1);
  if (model.pipeline.is_sentence_piece()) {
    std::ranges::copy(model.byte_tokens, of_byte.begin());
    return of_byte;
  }
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    const auto number = static_cast<std::int32_t>(id);
    if (token.size() != 1 || std::ranges::binary_search(model.special, number) ||
        std::ranges::binary_search(model.found, number)) {
      continue;
    }
    of_byte[static_cast<unsigned char>(token[0])] = number;
  }
  return of_byte;
}

std::string hash_of(const BpeModel& model) {
  Checksum checksum;
  const auto add = [&](const void* bytes, std::size_t size) {
    checksum.update({static_cast<const std::byte*>(bytes), size});
  };
  const auto add_count = [&](std::uint64_t count) { add(&count, sizeof count); };
  // Every corpus' sidecar holds this hash: another order would change all of them.
  constexpr std::string_view kPipeline = "byte-level BPE, GPT-2's splitter, Unicode 16.0";
  add(kPipeline.data(), kPipeline.size());
  add_count(model.tokens.size());
  for (const std::string& token : model.tokens) {
    add_count(token.size());
    add(token.data(), token.size());
  }
  add_count(model.merges.size());
  add(model.merges.data(), model.merges.size() * sizeof(BpeMerge));
  add_count(model.special.size());
  add(model.special.data(), model.special.size() * sizeof(std::int32_t));
  const BpePipeline& pipeline = model.pipeline;
  if (pipeline.prefix != BpePrefix::kNever) add_count(static_cast<std::uint64_t>(pipeline.prefix));
  if (model.end_of_text != kEndOfText) add(model.end_of_text.data(), model.end_of_text.size());
  if (model.is_as_gpt2()) return checksum.digest();
  add_count(static_cast<std::uint64_t>(pipeline.splitter));
  add_count(std::uint64_t{pipeline.nfc} | std::uint64_t{pipeline.ignore_merges} << 1 |
            std::uint64_t{pipeline.strips_space} << 2);
  for (const auto* list : {&model.found, &model.byte_tokens}) {
    add_count(list->size());
    add(list->data(), list->size() * sizeof(std::int32_t));
  }
  return checksum.digest();
}

void validate(const BpeModel& model, std::string_view source) {
  validate_ids(model, source);
  validate_origins(model, source);
  std::unordered_set<std::uint64_t> pairs;
  pairs.reserve(model.merges.size());
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    const BpeMerge& merge = model.merges[rank];
    const std::string& left = model.tokens[static_cast<std::size_t>(merge.left)];
    const std::string& right = model.tokens[static_cast<std::size_t>(merge.right)];
    const std::string& merged = model.tokens[static_cast<std::size_t>(merge.merged)];
    if (merged.size() != left.size() + right.size() || !merged.starts_with(left) || !merged.ends_with(right)) {
      throw_user_error("{}: merge {} ('{} {}') makes a token of other bytes", source, rank + 1, to_alphabet(left),
                       to_alphabet(right));
    }
    if (!pairs.insert(pair_key(merge.left, merge.right)).second) {
      throw_user_error("{}: merge {} ('{} {}') is listed twice", source, rank + 1, to_alphabet(left),
                       to_alphabet(right));
    }
  }
}

}  // namespace teratron
