#include "tokenizer/bpe/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "base/counted.h"
#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/splitter.h"

namespace teratron {
namespace {

struct CountedWord {
  std::string_view word;  // within the texts
  std::int64_t count;
};

// Counts the splitter's distinct words, in the order of their first occurrence: training needs nothing else of a
// corpus.
std::vector<CountedWord> count_words(std::span<const std::string_view> texts,
                                     const std::function<void(std::size_t bytes)>& progress) {
  constexpr std::size_t kReportBytes = std::size_t{1} << 20;  // bytes between calls of progress
  std::size_t counted = 0, reported = 0;
  std::vector<CountedWord> words;
  std::unordered_map<std::string_view, std::size_t> index_of;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::string_view word = text.substr(0, first_word_length(text));
      text.remove_prefix(word.size());
      const auto [found, is_new] = index_of.try_emplace(word, words.size());
      if (is_new) words.push_back({word, 0});
      ++words[found->second].count;
      counted += word.size();
      if (counted - reported < kReportBytes) continue;
      reported = counted;
      progress(counted);
    }
  }
  return words;
}

using PairKey = std::uint64_t;  // pair_key()

struct KeyHash {
  std::size_t operator()(PairKey key) const { return (key * 0x9E3779B97F4A7C15) >> 20; }
};

// Words as tokens, and the counts of all adjacent pairs, updated as pairs are joined.
class PairCounts {
 public:
  PairCounts(std::span<const CountedWord> words, const std::array<std::int32_t, 256>& byte_ids);

  // The pair to join next; its count is 0 if there is none.
  struct Best {
    std::int64_t count = 0;
    std::int32_t left = 0, right = 0;
  };
  Best pop_best();

  // Replaces the pair by `merged` in every word, from left to right.
  void join(std::int32_t left, std::int32_t right, std::int32_t merged);

 private:
  struct Word {
    std::size_t begin, length;  // in tokens_
    std::int64_t count;
  };
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // words where it occurs or did; may repeat
  };
  struct Candidate {
    std::int64_t count;
    PairKey pair;
    // The queue's top is the greatest: the highest count, then the smallest pair.
    bool operator<(const Candidate& other) const { return std::tie(count, other.pair) < std::tie(other.count, pair); }
  };

  void add(std::int32_t left, std::int32_t right, std::int64_t count, std::uint32_t word);
  void remove(std::int32_t left, std::int32_t right, std::int64_t count);
  void join_in_word(std::uint32_t index, std::int32_t left, std::int32_t right, std::int32_t merged);

  std::vector<std::int32_t> tokens_;
  std::vector<Word> words_;
  std::unordered_map<PairKey, Pair, KeyHash> pairs_;
  std::priority_queue<Candidate> queue_;  // a pair's newest entry or an older one with a higher count
  std::vector<PairKey> touched_;          // pairs that join() made, to queue
};

PairCounts::PairCounts(std::span<const CountedWord> words, const std::array<std::int32_t, 256>& byte_ids) {
  for (const CountedWord& word : words) {
    const auto index = static_cast<std::uint32_t>(words_.size());
    words_.push_back({tokens_.size(), word.word.size(), word.count});
    for (std::size_t i = 0; i < word.word.size(); ++i) {
      tokens_.push_back(byte_ids[static_cast<unsigned char>(word.word[i])]);
      if (i > 0) add(tokens_[tokens_.size() - 2], tokens_.back(), word.count, index);
    }
  }
  for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  touched_.clear();
}

void PairCounts::add(std::int32_t left, std::int32_t right, std::int64_t count, std::uint32_t word) {
  const PairKey key = pair_key(left, right);
  Pair& pair = pairs_[key];
  if (pair.words.empty()) touched_.push_back(key);
  pair.count += count;
  if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
}

void PairCounts::remove(std::int32_t left, std::int32_t right, std::int64_t count) {
  pairs_[pair_key(left, right)].count -= count;
}

PairCounts::Best PairCounts::pop_best() {
  while (!queue_.empty()) {
    const Candidate top = queue_.top();
    queue_.pop();
    const std::int64_t count = pairs_[top.pair].count;
    if (count == top.count) {
      return {count, static_cast<std::int32_t>(top.pair >> 32), static_cast<std::int32_t>(top.pair & 0xFFFFFFFF)};
    }
    // Counts only fall after a pair was queued, so the true count belongs further down.
    if (count > 0) queue_.push({count, top.pair});
  }
  return {};
}

void PairCounts::join(std::int32_t left, std::int32_t right, std::int32_t merged) {
  const auto joined = pairs_.extract(pair_key(left, right));
  for (const std::uint32_t word : joined.mapped().words) join_in_word(word, left, right, merged);
  pairs_.erase(pair_key(left, right));  // "aaa" removes its pair again
  for (const PairKey key : touched_) queue_.push({pairs_[key].count, key});
  touched_.clear();
}

void PairCounts::join_in_word(std::uint32_t index, std::int32_t left, std::int32_t right, std::int32_t merged) {
  Word& word = words_[index];
  const std::span<std::int32_t> tokens = std::span(tokens_).subspan(word.begin, word.length);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tokens.size();) {
    const bool joins = i + 1 < tokens.size() && tokens[i] == left && tokens[i + 1] == right;
    if (joins && kept > 0) {
      remove(tokens[kept - 1], left, word.count);
      add(tokens[kept - 1], merged, word.count, index);
    }
    if (joins && i + 2 < tokens.size()) {
      remove(right, tokens[i + 2], word.count);
      add(merged, tokens[i + 2], word.count, index);
    }
    tokens[kept++] = joins ? merged : tokens[i];
    i += joins ? 2 : 1;
  }
  word.length = kept;
}

void check_special(std::span<const std::string> special) {
  for (std::size_t i = 0; i < special.size(); ++i) {
    const std::string& text = special[i];
    const bool is_printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
    // Merges can never make a text of several words of the splitter.
    if (text.empty() || !is_printable || first_word_length(text) == text.size()) {
      throw_user_error("special token '{}' cannot be distinguished from text; write it like '<|name|>', in ASCII",
                       text);
    }
    if (std::ranges::find(special.begin(), special.begin() + static_cast<std::ptrdiff_t>(i), text) !=
        special.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw_user_error("special token '{}' is listed twice", text);
    }
  }
}

}  // namespace

BpeModel train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options) {
  check_special(options.special);
  const std::int64_t special_count = std::ssize(options.special);
  if (options.vocab_size < 256 + special_count) {
    throw_user_error("a vocabulary of {} tokens is too small: {} is the least (256 bytes and {})", options.vocab_size,
                     256 + special_count, counted(special_count, "special token"));
  }
  BpeTrainingProgress progress{.vocab_size = options.vocab_size};
  for (const std::string_view text : texts) progress.bytes += text.size();
  const auto report = [&](std::size_t bytes_counted, std::int64_t tokens) {
    progress.bytes_counted = bytes_counted;
    progress.tokens = tokens;
    if (options.progress) options.progress(progress);
  };
  const std::vector<CountedWord> words = count_words(texts, [&](std::size_t bytes) { report(bytes, 0); });
  if (words.empty()) throw_user_error("there is no text to train a tokenizer on; every file is empty");

  BpeModel model;
  std::array<std::int32_t, 256> byte_ids{};
  for (const std::uint8_t byte : bytes_in_alphabet_order()) {
    byte_ids[byte] = static_cast<std::int32_t>(model.tokens.size());
    model.tokens.emplace_back(1, static_cast<char>(byte));
  }
  PairCounts pairs(words, byte_ids);
  while (std::ssize(model.tokens) < options.vocab_size - special_count) {
    const PairCounts::Best best = pairs.pop_best();
    if (best.count < std::max<std::int64_t>(options.minimum_count, 1)) break;
    const auto merged = static_cast<std::int32_t>(model.tokens.size());
    model.tokens.push_back(model.tokens[static_cast<std::size_t>(best.left)] +
                           model.tokens[static_cast<std::size_t>(best.right)]);
    model.merges.push_back({best.left, best.right, merged});
    pairs.join(best.left, best.right, merged);
    report(progress.bytes, std::ssize(model.tokens));
  }
  for (const std::string& text : options.special) {
    model.special.push_back(static_cast<std::int32_t>(model.tokens.size()));
    model.tokens.push_back(text);
  }
  return model;
}

}  // namespace teratron
