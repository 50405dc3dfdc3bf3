#include "corpus/words.h"

#include <utf8proc.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/error.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace teratron {
namespace {

bool stands_alone(char32_t code) {
  return (code >= 0x3040 && code <= 0x30FF) || (code >= 0x3400 && code <= 0x9FFF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x20000 && code <= 0x3FFFF);
}

bool is_mark(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC;
}

// Small letters of ASCII; 0: no part of a word. Other bytes need is_word_part.
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
    const CharClass kind = class_of(step.code);
    const bool is_part =
        step.status == Utf8Status::kValid &&
        (kind == CharClass::kLetter || kind == CharClass::kNumber || (!word_.empty() && is_mark(step.code)));
    if (!is_part || stands_alone(step.code)) end_word(at);
    if (!is_part) return step.length;
    add(at,
        [&] { append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(step.code))), word_); });
    if (stands_alone(step.code)) end_word(at + step.length);
    return step.length;
  }

  template <class Append>
  void add(std::size_t at, const Append& append) {
    if (word_.empty()) begin_ = at;
    append();
  }

  void end_word(std::size_t end) {
    if (word_.empty()) return;
    words_.push_back({::XXH3_64bits(word_.data(), word_.size()), static_cast<std::uint32_t>(begin_),
                      static_cast<std::uint32_t>(end)});
    word_.clear();
  }

  std::string_view text_;
  std::string word_;
  std::size_t begin_ = 0;
  std::vector<Word> words_;
};

std::uint64_t mixed(std::uint64_t value) {  // every bit of it decides every bit of the result
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

}  // namespace teratron
