// N-gram language models of token ids: what a trained model has to beat on the same tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Both models see the corpus as one stream, as GPT training does: n-grams run on across the end-of-text token. Their
// probabilities over the vocabulary sum to one after every context. Vocabularies have at most 65536 tokens.
// nats_per_token is the mean of -ln p over tokens[first_target], tokens[first_target + 1], ..., each given what stands
// before it in `tokens`; first_target 1 scores what a GPT scores.

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

// All n-grams of one order, by their context (the tokens before the last, packed 16 bits each), with the discounts and
// back-off weights of that order.
class NgramOrder {
 public:
  NgramOrder() = default;
  // `ngrams`: packed, ascending, one entry per occurrence to be counted.
  explicit NgramOrder(std::span<const std::uint64_t> ngrams);

  // The discounted frequency of `token` after `context`, plus the weight left over times `lower`, the probability that
  // the next lower order gives. An unseen context gives `lower`.
  double interpolate(std::uint64_t context, std::uint16_t token, double lower) const;

 private:
  struct Context {
    std::uint64_t tokens = 0;
    std::size_t first = 0;      // of its n-grams
    double total = 0;           // of their counts
    double backoff_weight = 0;  // the share that the discounts set free
  };
  void estimate_discounts();
  void weigh_contexts();
  double discount(std::uint32_t count) const { return discounts_[count < 3 ? count : 3]; }

  std::vector<Context> contexts_;  // ascending, and one past the last
  std::vector<std::uint16_t> last_tokens_;
  std::vector<std::uint32_t> counts_;
  std::array<double, 4> discounts_{};  // of counts 0, 1, 2, and 3 or more
};

// Interpolated modified Kneser-Ney (Chen and Goodman, "An empirical study of smoothing techniques for language
// modeling", TR-10-98, section 3): trigrams by their count, bigrams and unigrams by the number of different tokens seen
// before them, below those the uniform distribution.
class KneserNeyTrigram {
 public:
  // Takes O(n log n) time and about 60 bytes a token while it runs.
  KneserNeyTrigram(std::span<const std::int32_t> tokens, std::int64_t vocab_size);
  // Given the last two tokens of `context`, or as many as there are.
  double probability(std::span<const std::int32_t> context, std::int32_t token) const;
  double nats_per_token(std::span<const std::int32_t> tokens, std::int64_t first_target = 0) const;

 private:
  std::int64_t vocab_size_;
  std::array<NgramOrder, 3> orders_;  // unigrams, bigrams, trigrams
};

}  // namespace teratron
