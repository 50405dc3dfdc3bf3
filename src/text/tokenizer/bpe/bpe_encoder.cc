#include "tokenizer/bpe/bpe_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "tokenizer/bpe/splitter.h"

namespace teratron {

void BpeEncoder::encode(std::string_view text, std::vector<std::int32_t>& out) {
  // Words go in groups: first each one's place in the cache is found and asked for, then they are read, so that the
  // waits for memory overlap.
  struct Pending {
    WordCache::Key key;
    const WordCache::Entry* entry;  // null: too long to be cached
    std::string_view word;
  };
  constexpr std::size_t kGroup = 64;
  std::array<Pending, kGroup> pending;
  std::array<std::int32_t, kGroup * WordCache::kMostTokens> gathered;  // a vector would check its room for every word
  while (!text.empty()) {
    std::size_t words = 0;
    for (; words < pending.size() && !text.empty(); ++words) {
      const std::size_t length = first_word_length(text);
      Pending& next = pending[words];
      next.word = text.substr(0, length);
      next.entry = nullptr;
      if (length <= WordCache::kLongestWord) {
        next.key = WordCache::key_of(text, length);
        next.entry = &cache_.entry(next.key);
        __builtin_prefetch(next.entry);
      }
      text.remove_prefix(length);
    }
    std::size_t count = 0;
    const auto flush = [&] {
      out.insert(out.end(), gathered.begin(), gathered.begin() + static_cast<std::ptrdiff_t>(count));
      count = 0;
    };
    for (const Pending& next : std::span(pending).first(words)) {
      if (next.entry != nullptr && next.entry->key == next.key) {
        std::memcpy(&gathered[count], next.entry->tokens.data(), sizeof next.entry->tokens);  // all: no call, no loop
        count += static_cast<std::size_t>(next.entry->count);
      } else {
        flush();
        append_word(next.word, out);
      }
    }
    flush();
  }
}

void BpeEncoder::append_word(std::string_view word, std::vector<std::int32_t>& out) {
  const std::size_t before = out.size();
  merger_.append(word, out);
  const std::size_t count = out.size() - before;
  if (word.size() > WordCache::kLongestWord || count > WordCache::kMostTokens) return;
  const WordCache::Key key = WordCache::key_of(word, word.size());
  WordCache::Entry& entry = cache_.entry(key);
  entry.key = key;
  std::copy_n(out.end() - static_cast<std::ptrdiff_t>(count), count, entry.tokens.begin());
  entry.count = static_cast<std::int32_t>(count);
}

}  // namespace teratron
