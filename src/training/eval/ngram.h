// N-gram language models of token ids, as baselines on the same tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Both models see the corpus as one stream, as GPT training does: n-grams cross the end-of-text token. Their
// probabilities sum to one after every context. Vocabularies have at most 2^21 tokens. nats_per_token is the mean of
// -ln p over tokens[first_target], tokens[first_target + 1], .., each given the tokens before it. first_target 1 scores
// the targets of a GPT.

// Add-one (Laplace) smoothed frequencies.
class UnigramModel {
 public:
  UnigramModel(std::span<const std::int32_t> tokens, std::int64_t vocab_size);
  double probability(std::int32_t token) const;
  double nats_per_token(std::span<const std::int32_t> tokens, std::int64_t first_target = 0) const;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0;
};

// N-grams of one order by their context (the tokens before the last, packed 21 bits each), with discounts and back-off
// weights.
class NgramOrder {
 public:
  NgramOrder() = default;
  // `ngrams`: packed, ascending, one entry per occurrence.
  explicit NgramOrder(std::span<const std::uint64_t> ngrams);

  // Probability of `token` after `context`: its discounted frequency plus the back-off weight times `lower`, the next
  // lower order's probability. An unseen context gives `lower`.
  double interpolate(std::uint64_t context, std::uint32_t token, double lower) const;

 private:
  struct Context {
    std::uint64_t tokens = 0;
    std::size_t first = 0;      // index of its first n-gram
    double total = 0;           // sum of their counts
    double backoff_weight = 0;  // share freed by the discounts
  };
  void estimate_discounts();
  void weigh_contexts();
  double discount(std::uint32_t count) const { return discounts_[count < 3 ? count : 3]; }

  std::vector<Context> contexts_;  // ascending, and one past the last
  std::vector<std::uint32_t> last_tokens_;
  std::vector<std::uint32_t> counts_;
  std::array<double, 4> discounts_{};  // for counts 0, 1, 2, and 3 or more
};

// Interpolated modified Kneser-Ney (Chen and Goodman, "An empirical study of smoothing techniques for language
// modeling", TR-10-98, section 3): trigrams by their count, bigrams and unigrams by the number of different tokens seen
// before them, and below them the uniform distribution.
class KneserNeyTrigram {
 public:
  // Takes O(n log n) time and about 60 bytes per token.
  KneserNeyTrigram(std::span<const std::int32_t> tokens, std::int64_t vocab_size);
  // Probability given the last two tokens of `context`, or as many as there are.
  double probability(std::span<const std::int32_t> context, std::int32_t token) const;
  double nats_per_token(std::span<const std::int32_t> tokens, std::int64_t first_target = 0) const;

 private:
  std::int64_t vocab_size_;
  std::array<NgramOrder, 3> orders_;  // unigrams, bigrams, trigrams
};

}  // namespace teratron
