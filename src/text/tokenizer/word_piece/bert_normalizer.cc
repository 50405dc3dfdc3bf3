#include "tokenizer/word_piece/bert_normalizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/word_piece/bert_characters.h"

namespace teratron {

std::span<const NormalizedCharacter> BertNormalizer::normalize(std::string_view text) {
  clean(text);
  if (strip_accents_) strip_accents();
  if (lower_case_) lower();
  return characters_;
}

void BertNormalizer::clean(std::string_view text) {
  characters_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.substr(at));
    const auto begin = static_cast<std::uint32_t>(at);
    at += step.length;
    if (step.status != Utf8Status::kValid) continue;
    const auto put = [&](char32_t code) { characters_.push_back({code, begin, static_cast<std::uint32_t>(at)}); };
    switch (bert::clean(step.code)) {
      case bert::Cleaned::kDropped: break;
      case bert::Cleaned::kSpace: put(' '); break;
      case bert::Cleaned::kKept:
        if (split_chinese_ && bert::is_ideograph(step.code)) {
          put(' ');
          put(step.code);
          put(' ');
        } else {
          put(step.code);
        }
    }
  }
}

void BertNormalizer::decompose() {
  parts_.clear();
  for (const NormalizedCharacter& character : characters_) {
    bool begins = true;
    for (const char32_t code : bert::decompose(character.code)) {
      parts_.push_back(
          {{code, character.begin, character.end}, static_cast<std::uint8_t>(bert::combining_class(code)), begins});
      begins = false;
    }
  }
}

// Sorts a run of marks. Hugging Face then reassigns the bytes of the text: the marks that begin a character take those
// of the characters in turn, and each other mark takes those of the part before it. There is always one: the parts of a
// character are sorted already, so the first mark of a text begins a character.
void BertNormalizer::sort_marks(std::size_t begin, std::size_t end) {
  const auto run = std::span(parts_).subspan(begin, end - begin);
  sources_.clear();
  for (const Part& part : run) {
    if (part.begins) sources_.push_back(part.character);
  }
  std::ranges::stable_sort(run, {}, &Part::combining_class);
  std::size_t next = 0;
  for (std::size_t i = begin; i < end; ++i) {
    NormalizedCharacter& mark = parts_[i].character;
    const NormalizedCharacter& source = parts_[i].begins ? sources_[next++] : parts_[i - 1].character;
    mark.begin = source.begin;
    mark.end = source.end;
  }
}

void BertNormalizer::strip_accents() {
  decompose();
  for (std::size_t begin = 0; begin < parts_.size();) {
    std::size_t end = begin;
    while (end < parts_.size() && parts_[end].combining_class != 0) ++end;
    if (end - begin > 1) sort_marks(begin, end);
    begin = end + 1;
  }
  characters_.clear();
  for (const Part& part : parts_) {
    if (!bert::is_nonspacing_mark(part.character.code)) characters_.push_back(part.character);
  }
}

void BertNormalizer::lower() {
  lowered_.clear();
  for (const NormalizedCharacter& character : characters_) {
    for (const char32_t code : bert::to_lower(character.code)) {
      lowered_.push_back({code, character.begin, character.end});
    }
  }
  characters_.swap(lowered_);
}

}  // namespace teratron
