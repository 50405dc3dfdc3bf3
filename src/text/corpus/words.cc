#include "corpus/words.h"

#include <utf8proc.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

// Han, kana and similar scripts: a line may break after each character.
bool stands_alone(char32_t code) {
  static constexpr std::array<CodeRange, 11> kScripts = {{{0x3040, 0x312F},      // kana, Bopomofo
                                                          {0x31A0, 0x31BF},      // Bopomofo
                                                          {0x31F0, 0x31FF},      // kana
                                                          {0x3400, 0x9FFF},      // Han
                                                          {0xA000, 0xA48F},      // Yi
                                                          {0xF900, 0xFAFF},      // Han
                                                          {0xFF66, 0xFF9F},      // kana of half the width
                                                          {0x17000, 0x18DFF},    // Tangut, Khitan
                                                          {0x1AFF0, 0x1B16F},    // kana
                                                          {0x1B170, 0x1B2FF},    // Nushu
                                                          {0x20000, 0x3FFFF}}};  // Han
  return code >= 0x3040 && is_within(kScripts, code);
}

// Scripts without a sign between words, of whose letters several make a syllable: the scripts in use of Unicode's line
// break classes SA, AK and AS. Tibetan has such a sign, the tsheg, between syllables.
bool is_in_clusters(char32_t code) {
  static constexpr std::array<CodeRange, 15> kScripts = {{{0x0E00, 0x0E4E},  // Thai
                                                          {0x0E80, 0x0ECF},  // Lao
                                                          {0x0EDC, 0x0EDF},
                                                          {0x1000, 0x109F},      // Burmese
                                                          {0x1780, 0x17DD},      // Khmer
                                                          {0x1950, 0x19DF},      // Tai Le, New Tai Lue
                                                          {0x1A00, 0x1AAD},      // Buginese, Tai Tham
                                                          {0x1B00, 0x1B4C},      // Balinese
                                                          {0x1BC0, 0x1BFF},      // Batak
                                                          {0xA980, 0xA9CF},      // Javanese
                                                          {0xA9E0, 0xA9FE},      // Burmese
                                                          {0xAA00, 0xAADF},      // Cham, Burmese, Tai Viet
                                                          {0x11700, 0x11746},    // Ahom
                                                          {0x11EE0, 0x11EF6},    // Makasar
                                                          {0x11F00, 0x11F42}}};  // Kawi
  return code >= 0x0E00 && is_within(kScripts, code);
}

// A sign that joins the next letter to the one before: Balinese, Burmese, Javanese, Kawi, Khmer and Tai Tham.
bool joins_letters(char32_t code) {
  return code == 0x1039 || code == 0x17D2 || code == 0x1A60 || code == 0x1B44 || code == 0xA9C0 || code == 0x11F42;
}

bool is_mark(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC;
}

// The vowel AM of Thai and Lao, which Unicode calls a letter, is part of the cluster before it. So is AA after the sign
// with which it composes AM.
bool is_part_of_cluster(char32_t code, bool has_nasal_sign) {
  return is_mark(code) || code == 0x0E33 || code == 0x0EB3 || (has_nasal_sign && (code == 0x0E32 || code == 0x0EB2));
}
bool is_nasal_sign(char32_t code) { return code == 0x0E4D || code == 0x0ECD; }

// Marks that voice the kana before them; Unicode calls the half-width ones letters.
bool is_voicing(char32_t code) { return code == 0x3099 || code == 0x309A || code == 0xFF9E || code == 0xFF9F; }

// Invisible characters that are part of no word: soft hyphens, zero-width spaces, joiners.
bool is_unseen(char32_t code) {
  return code == 0x00AD || (code >= 0x200B && code <= 0x200D) || code == 0x2060 || code == 0xFEFF;
}

// Letters composed as in NFKC.
bool is_composed(char32_t code) {
  return (code >= 0xC0 && code < 0x180) || (code >= 0x1CD && code < 0x234) || (code >= 0x38A && code < 0x3CF) ||
         (code >= 0x400 && code < 0x530) || (code >= 0x1E00 && code < 0x1F00);
}

// Whether the word needs more than this letter in lower case: the letter has another form in NFKC, joins with its
// neighbours, or folds to several letters.
bool needs_folding(char32_t code) {
  const auto sign = static_cast<utf8proc_int32_t>(code);
  const utf8proc_property_t& property = *utf8proc_get_property(sign);
  constexpr std::uint16_t kNone = 0xFFFF;
  const bool is_jamo = code >= 0x1100 && code < 0x1200;
  if (property.combining_class != 0 || is_jamo || is_mark(code) || is_voicing(code)) return true;
  if (property.decomp_seqindex != kNone && (property.decomp_type != 0 || !is_composed(code))) return true;
  std::array<utf8proc_int32_t, 8> folded{};
  int last = 0;
  if (property.casefold_seqindex == kNone) return false;
  return utf8proc_decompose_char(sign, folded.data(), folded.size(), UTF8PROC_CASEFOLD, &last) != 1 ||
         folded[0] != utf8proc_tolower(sign);
}

// NFKC without case, equal for all ways in which Unicode can write a word. The word itself if it cannot be mapped.
std::string folded(const std::string& word) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(word.data()),
                                   static_cast<utf8proc_ssize_t>(word.size()), &mapped,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT |
                                                                  UTF8PROC_CASEFOLD | UTF8PROC_IGNORE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (length < 0) return word;
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)};
}

// Lower-case ASCII letters; 0 for no part of a word. Other bytes need is_word_part.
constexpr std::array<char, 128> kAsciiWords = [] {
  std::array<char, 128> small{};
  for (unsigned char c = '0'; c <= '9'; ++c) small[c] = static_cast<char>(c);
  for (unsigned char c = 'a', capital = 'A'; c <= 'z'; ++c, ++capital) {
    small[c] = small[capital] = static_cast<char>(c);
  }
  return small;
}();

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) { words_.reserve(text.size() / 5); }

  std::vector<Word> read() {
    for (std::size_t at = 0; at < text_.size();) {
      const auto byte = static_cast<unsigned char>(text_[at]);
      if (byte < 0x80) {
        if (const char small = kAsciiWords[byte]; small != 0) {
          if (is_cluster_ || is_alone_) end_word(at);
          add(at, [&] { word_.push_back(small); });
        } else {
          end_word(at);
        }
        ++at;
      } else {
        at += read_character(at);
      }
    }
    end_word(text_.size());
    return std::move(words_);
  }

 private:
  std::size_t read_character(std::size_t at) {
    const Utf8Step step = decode_utf8(text_.substr(at));
    const bool is_valid = step.status == Utf8Status::kValid;
    if (is_valid && is_unseen(step.code)) return step.length;
    const CharClass kind = class_of(step.code);
    const bool is_part = is_valid && (kind == CharClass::kLetter || kind == CharClass::kNumber ||
                                      (!word_.empty() && (is_mark(step.code) || is_voicing(step.code))));
    if (!is_part || begins_word(step.code)) end_word(at);
    if (!is_part) return step.length;
    if (word_.empty()) {
      is_cluster_ = is_in_clusters(step.code);
      is_alone_ = stands_alone(step.code);
    }
    is_joined_ = joins_letters(step.code);
    has_nasal_sign_ = is_nasal_sign(step.code) || (has_nasal_sign_ && is_mark(step.code));
    const bool folds = needs_folding(step.code);
    needs_folding_ = needs_folding_ || folds;
    const auto sign = static_cast<utf8proc_int32_t>(step.code);
    add(at, [&] { append_utf8(folds ? step.code : static_cast<char32_t>(utf8proc_tolower(sign)), word_); });
    return step.length;
  }

  // Whether this part of a word begins another word.
  bool begins_word(char32_t code) const {
    if (is_alone_) return !is_mark(code) && !is_voicing(code);
    if (is_cluster_) return !is_part_of_cluster(code, has_nasal_sign_) && !(is_joined_ && is_in_clusters(code));
    return stands_alone(code) || (is_in_clusters(code) && !is_mark(code));
  }

  template <class Append>
  void add(std::size_t at, const Append& append) {
    if (word_.empty()) begin_ = at;
    append();
  }

  void end_word(std::size_t end) {
    if (word_.empty()) return;
    if (needs_folding_) word_ = folded(word_);
    words_.push_back({::XXH3_64bits(word_.data(), word_.size()), static_cast<std::uint32_t>(begin_),
                      static_cast<std::uint32_t>(end)});
    word_.clear();
    is_cluster_ = is_joined_ = is_alone_ = has_nasal_sign_ = needs_folding_ = false;
  }

  std::string_view text_;
  std::string word_;
  std::size_t begin_ = 0;
  bool is_cluster_ = false;  // the word is of a script without spaces
  bool is_joined_ = false;   // it ends in a sign that joins letters
  bool is_alone_ = false;    // the word is a single character
  bool has_nasal_sign_ = false, needs_folding_ = false;
  std::vector<Word> words_;
};

std::uint64_t mixed(std::uint64_t value) {  // each bit of `value` affects each bit of the result
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93ULL;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93ULL;
  return value ^ (value >> 32);
}

}  // namespace

std::vector<Word> words_of(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max())
    throw_user_error("a document of 4 GiB or more; cut it up");
  return WordReader(text).read();
}

std::uint64_t ngram_hash(std::span<const Word> run) {
  std::uint64_t hash = run.size();
  for (const Word& word : run) hash = mixed(hash * 0x9E3779B97F4A7C15ULL + word.hash);
  return hash;
}

std::vector<std::uint64_t> ngrams_of(std::span<const Word> words, std::int64_t count) {
  std::vector<std::uint64_t> ngrams;
  if (words.empty()) return ngrams;
  const auto length = std::min(words.size(), static_cast<std::size_t>(count));
  ngrams.reserve(words.size() - length + 1);
  for (std::size_t i = 0; i + length <= words.size(); ++i) ngrams.push_back(ngram_hash(words.subspan(i, length)));
  return ngrams;
}

std::vector<std::uint64_t> shingles_of(std::string_view text, std::int64_t count) {
  std::vector<std::uint64_t> shingles = ngrams_of(words_of(text), count);
  if (!shingles.empty()) return shingles;
  std::string signs;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.substr(at));
    const bool is_space = step.status == Utf8Status::kValid && class_of(step.code) == CharClass::kSpace;
    if (!is_space) signs += text.substr(at, step.length);
    at += step.length;
  }
  constexpr std::uint64_t kWithoutWords = 1;  // a seed that words do not use
  return {::XXH3_64bits_withSeed(signs.data(), signs.size(), kWithoutWords)};
}

}  // namespace teratron
