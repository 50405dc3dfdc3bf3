#include "corpus/clean/mojibake.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "corpus/clean/windows_1252.h"
#include "tokenizer/utf8.h"

namespace teratron {
namespace {

struct ShownCharacter {
  std::size_t begin, end;  // in the line
  char32_t code;
  int byte;  // that it may stand for; -1: none
};

// Characters that look like one that was encoded.
struct Candidate {
  std::size_t first, count;  // in the list of characters
  char32_t code;
  bool is_certain;
};

std::vector<ShownCharacter> shown_characters(std::string_view line) {
  std::vector<ShownCharacter> characters;
  for (std::size_t at = 0; at < line.size();) {
    const Utf8Step step = decode_utf8(line.substr(at));
    if (step.code >= 0x80) {
      const auto byte = shown_byte(step.code);
      characters.push_back({at, at + step.length, step.code, byte ? int{*byte} : -1});
    }
    at += step.length;
  }
  return characters;
}

bool is_one_of(int byte, std::string_view bytes) { return bytes.find(static_cast<char>(byte)) != bytes.npos; }

// Continuation bytes by what windows-1252 shows for them: signs that seldom stand beside a letter.
bool is_seldom_beside_letters(const ShownCharacter& character) {
  const bool is_control = character.code < 0xA0;
  return is_control || is_one_of(character.byte,
                                 "\x80\x83\x86\x87\x88\x89\x98\xA2\xA3\xA4\xA5\xA6\xA7\xA8\xAA\xAC\xAD\xAF\xB1\xB4\xB5"
                                 "\xB6\xB8\xBA\xBC\xBD\xBE");
}

bool is_certain_pair(int lead, const ShownCharacter& next) {
  // The apostrophe and the ellipsis follow any word, and capitals with a caron any capital.
  if (is_one_of(lead, "\xC2\xC3\xCE\xD0")) return !is_one_of(next.byte, "\x85\x92\x8C\x8E");
  if (lead == 0xD7) return false;  // the multiplication sign
  // Letters that faces are drawn with.
  if ((lead >= 0xD2 && lead <= 0xD6) || (lead >= 0xD9 && lead <= 0xDB)) return next.code < 0xA0;
  return is_seldom_beside_letters(next);
}

bool is_certain(std::span<const ShownCharacter> characters, char32_t code) {
  if (characters.size() == 4 || code == 0xFEFF) return true;
  if (characters.size() == 2) return is_certain_pair(characters[0].byte, characters[1]);
  return is_seldom_beside_letters(characters[1]) || is_seldom_beside_letters(characters[2]);
}

std::vector<Candidate> candidates_among(std::span<const ShownCharacter> characters) {
  std::vector<Candidate> candidates;
  std::string bytes;
  for (std::size_t first = 0; first < characters.size();) {
    bytes.clear();
    for (std::size_t i = first; i < characters.size() && i < first + 4 && characters[i].byte >= 0; ++i) {
      if (i > first && characters[i].begin != characters[i - 1].end) break;
      bytes.push_back(static_cast<char>(characters[i].byte));
    }
    const Utf8Step step = bytes.empty() ? Utf8Step{} : decode_utf8(bytes);
    if (step.status != Utf8Status::kValid) {
      ++first;
      continue;
    }
    candidates.push_back(
        {first, step.length, step.code, is_certain(characters.subspan(first, step.length), step.code)});
    first += step.length;
  }
  return candidates;
}

// Marks all of the line, or of each row of candidates without anything between them, as certain where that is so.
void spread_certainty(std::span<const ShownCharacter> characters, std::span<Candidate> candidates) {
  std::size_t covered = 0;
  for (const Candidate& candidate : candidates) covered += candidate.count;
  const auto is_one_certain = [](std::span<const Candidate> some) {
    return std::ranges::any_of(some, &Candidate::is_certain);
  };
  const bool is_whole = covered == characters.size() && is_one_certain(candidates);
  for (std::size_t begin = 0; begin < candidates.size();) {
    std::size_t end = begin + 1;
    const auto follows = [&](const Candidate& before, const Candidate& after) {
      return characters[before.first + before.count - 1].end == characters[after.first].begin;
    };
    while (end < candidates.size() && follows(candidates[end - 1], candidates[end])) ++end;
    const std::span<Candidate> row = candidates.subspan(begin, end - begin);
    const bool is_row_certain = is_whole || row.size() > 1 || is_one_certain(row);
    for (Candidate& candidate : row) candidate.is_certain = is_row_certain;
    begin = end;
  }
}

}  // namespace

std::string mend_mojibake(std::string_view line) {
  const std::vector<ShownCharacter> characters = shown_characters(line);
  std::vector<Candidate> candidates = candidates_among(characters);
  spread_certainty(characters, candidates);
  std::string mended;
  mended.reserve(line.size());
  std::size_t copied = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_certain) continue;
    const std::size_t begin = characters[candidate.first].begin;
    mended += line.substr(copied, begin - copied);
    append_utf8(candidate.code, mended);
    copied = characters[candidate.first + candidate.count - 1].end;
  }
  return mended += line.substr(copied);
}

}  // namespace teratron
