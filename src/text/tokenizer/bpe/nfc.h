// Unicode's composed form (NFC), of Unicode 9 as in Hugging Face's tokenizers (word_piece/bert_characters.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace teratron {

class Nfc {
 public:
  // The tables, which the first call makes.
  static const Nfc& instance();

  // Whether the character stands in NFC whatever follows it, and nothing before it changes because of it.
  bool is_stable(char32_t code) const {
    return code < 0x300 || code >= kEnd || (unstable_[code / 64] >> (code % 64) & 1) == 0;
  }
  // Appends the composed form of `characters`: at most one stable character, then unstable ones.
  void append(std::u32string_view characters, std::string& out) const;

 private:
  Nfc();
  void add_composition(char32_t code);
  // The composed character of a pair; 0: none.
  char32_t compose(char32_t first, char32_t second) const;
  std::u32string decompose(std::u32string_view characters) const;

  static constexpr char32_t kEnd = 0x30000;
  std::vector<std::uint64_t> unstable_;  // a bit a code point
  std::unordered_map<std::uint64_t, char32_t> composed_;
};

}  // namespace teratron
