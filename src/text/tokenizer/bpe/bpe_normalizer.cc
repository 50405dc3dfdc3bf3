#include "tokenizer/bpe/bpe_normalizer.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "tokenizer/bpe/nfc.h"

namespace teratron {
namespace {

// The offset of the first byte at or after `from` that begins a character of several bytes, or no character at all.
std::size_t next_lead(std::string_view text, std::size_t from) {
  constexpr std::uint64_t kEach = 0x8080808080808080;
  std::size_t at = from;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & (word << 1) & kEach) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0xC0) ++at;
  return at;
}

}  // namespace

BpeNormalizer::BpeNormalizer(const BpeModel& model)
    : has_spaces_(model.pipeline.is_sentence_piece()), nfc_(model.pipeline.nfc) {
  const std::array<std::int32_t, 256> of_byte = tokens_of_bytes(model);
  for (std::size_t byte = 0; byte < of_byte.size(); ++byte) is_dropped_[byte] = of_byte[byte] < 0;
  drops_ = std::ranges::any_of(is_dropped_, [](bool dropped) { return dropped; });
}

// A composition is a stable character, if there is one, and the unstable ones after it.
BpeNormalizer::Change BpeNormalizer::next_composition(std::string_view text, std::size_t from) const {
  const Nfc& nfc = Nfc::instance();
  Change change{.text_begin = from, .text_end = from};
  bool is_found = false;
  for (std::size_t at = from; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (is_found && byte < 0xCC) break;
    if (!is_found && byte < 0xCC && !(drops_ && is_dropped_[byte])) {
      const std::size_t next = std::max(next_lead(text, at + 1), at + 1);
      change.text_begin = next - 1;
      while (change.text_begin > at && continues_character(text[change.text_begin])) --change.text_begin;
      at = next;
      continue;
    }
    const Utf8Step step = decode_utf8(text.substr(at));
    const bool is_valid = step.status == Utf8Status::kValid;
    if (!is_found && drops_ && is_dropped_[byte]) return {.text_begin = at, .text_end = at + 1};
    if (is_found && (!is_valid || nfc.is_stable(step.code))) break;
    if (is_valid && !nfc.is_stable(step.code)) {
      is_found = true;
    } else {
      change.text_begin = is_valid ? at : at + step.length;
    }
    at += step.length;
    change.text_end = at;
  }
  return is_found ? change : Change{.text_begin = text.size(), .text_end = text.size()};
}

BpeNormalizer::Change BpeNormalizer::next_change(std::string_view text, std::size_t from) const {
  if (has_spaces_) {
    const std::size_t at = std::min(text.find(kSpaceSign, from), text.size());
    return {.text_begin = at, .text_end = std::min(at + kSpaceSign.size(), text.size())};
  }
  if (nfc_) return next_composition(text, from);
  std::size_t at = from;
  while (at < text.size() && !is_dropped_[static_cast<unsigned char>(text[at])]) ++at;
  return {.text_begin = at, .text_end = std::min(at + 1, text.size())};
}

void BpeNormalizer::append_changed(std::string_view part, std::string& result) const {
  if (has_spaces_) {
    result.push_back(' ');
    return;
  }
  std::u32string characters;
  for (Utf8Step step; !part.empty(); part.remove_prefix(step.length)) {
    step = decode_utf8(part);
    if (step.status == Utf8Status::kValid) {
      characters.push_back(step.code);
    } else if (!drops_ || !is_dropped_[static_cast<unsigned char>(part[0])]) {
      result.append(part.substr(0, step.length));  // a stray byte before the first mark
    }
  }
  if (!characters.empty()) Nfc::instance().append(characters, result);
}

std::string_view BpeNormalizer::normalize(std::string_view text, std::string& result,
                                          std::vector<Change>* changes) const {
  if (!has_spaces_ && !nfc_ && !drops_) return text;
  Change change = next_change(text, 0);
  if (change.text_begin == text.size()) return text;
  result.clear();
  std::size_t at = 0;
  for (; change.text_begin < text.size(); change = next_change(text, at)) {
    result.append(text.substr(at, change.text_begin - at));
    change.begin = result.size();
    append_changed(text.substr(change.text_begin, change.text_end - change.text_begin), result);
    change.end = result.size();
    if (changes != nullptr) changes->push_back(change);
    at = change.text_end;
  }
  result.append(text.substr(at));
  return result;
}

}  // namespace teratron
