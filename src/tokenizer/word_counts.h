// How often each word of the splitter occurs: all that training needs to know of a corpus.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace teratron {

struct CountedWord {
  std::string_view word;  // within the texts
  std::int64_t count;
};

// The distinct words, in the order of their first occurrence.
std::vector<CountedWord> count_words(std::span<const std::string_view> texts);

}  // namespace teratron
