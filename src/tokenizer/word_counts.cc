#include "tokenizer/word_counts.h"

#include <unordered_map>

#include "tokenizer/splitter.h"

namespace teratron {

std::vector<CountedWord> count_words(std::span<const std::string_view> texts) {
  std::vector<CountedWord> words;
  std::unordered_map<std::string_view, std::size_t> index_of;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::string_view word = text.substr(0, first_word_length(text));
      text.remove_prefix(word.size());
      const auto [found, is_new] = index_of.try_emplace(word, words.size());
      if (is_new) words.push_back({word, 0});
      ++words[found->second].count;
    }
  }
  return words;
}

}  // namespace teratron
