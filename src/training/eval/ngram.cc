#include "eval/ngram.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace teratron {
namespace {

constexpr int kTokenBits = 21;  // three of which fit into 64

constexpr std::uint64_t low_tokens(int tokens) { return (std::uint64_t{1} << (kTokenBits * tokens)) - 1; }

void check_tokens(std::span<const std::int32_t> tokens, std::int64_t vocab_size) {
  check(vocab_size >= 1 && vocab_size <= 1 << kTokenBits, "n-gram models take vocabularies of 1 to 2^21 tokens");
  for (const std::int32_t token : tokens) check(token >= 0 && token < vocab_size, "a token outside the vocabulary");
}

template <class Probability>
double mean_nats(std::span<const std::int32_t> tokens, std::int64_t first_target, const Probability& probability) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  check(first_target >= 0 && first_target < count, "nats_per_token: no tokens to score");
  double sum = 0;
  for (std::int64_t i = first_target; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    sum -= std::log(probability(tokens.first(at), tokens[at]));
  }
  return sum / static_cast<double>(count - first_target);
}

// N-grams of the next lower order, `order`, one per different n-gram: each without its first token.
std::vector<std::uint64_t> shortened(std::span<const std::uint64_t> ngrams, int order) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < ngrams.size(); ++i) {
    if (i == 0 || ngrams[i] != ngrams[i - 1]) result.push_back(ngrams[i] & low_tokens(order));
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

UnigramModel::UnigramModel(std::span<const std::int32_t> tokens, std::int64_t vocab_size)
    : total_(static_cast<std::int64_t>(tokens.size())) {
  check_tokens(tokens, vocab_size);
  counts_.assign(static_cast<std::size_t>(vocab_size), 0);
  for (const std::int32_t token : tokens) ++counts_[static_cast<std::size_t>(token)];
}

double UnigramModel::probability(std::int32_t token) const {
  const auto vocab_size = static_cast<std::int64_t>(counts_.size());
  check(token >= 0 && token < vocab_size, "a token outside the vocabulary");
  return static_cast<double>(counts_[static_cast<std::size_t>(token)] + 1) / static_cast<double>(total_ + vocab_size);
}

double UnigramModel::nats_per_token(std::span<const std::int32_t> tokens, std::int64_t first_target) const {
  return mean_nats(tokens, first_target, [this](auto, std::int32_t token) { return probability(token); });
}

NgramOrder::NgramOrder(std::span<const std::uint64_t> ngrams) {
  for (std::size_t i = 0; i < ngrams.size(); ++i) {
    if (i > 0 && ngrams[i] == ngrams[i - 1]) {
      ++counts_.back();
      continue;
    }
    if (contexts_.empty() || contexts_.back().tokens != ngrams[i] >> kTokenBits) {
      contexts_.push_back({.tokens = ngrams[i] >> kTokenBits, .first = counts_.size()});
    }
    last_tokens_.push_back(static_cast<std::uint32_t>(ngrams[i] & low_tokens(1)));
    counts_.push_back(1);
  }
  contexts_.push_back({.tokens = ~std::uint64_t{0}, .first = counts_.size()});
  estimate_discounts();
  weigh_contexts();
}

// Estimates discounts by Chen and Goodman, from the numbers of n-grams counted once to four times. Where too few
// n-grams make the estimates invalid, fixed discounts hold: any above zero and at most the count give a proper
// distribution.
void NgramOrder::estimate_discounts() {
  std::array<double, 5> having{};
  for (const std::uint32_t count : counts_) {
    if (count < having.size()) having[count] += 1;
  }
  discounts_ = {0.0, 0.5, 1.0, 1.5};
  if (having[1] == 0 || having[2] == 0 || having[3] == 0) return;
  const double ratio = having[1] / (having[1] + 2 * having[2]);
  std::array<double, 4> estimate{};
  for (std::size_t count = 1; count < estimate.size(); ++count) {
    const auto k = static_cast<double>(count);
    estimate[count] = k - (k + 1) * ratio * having[count + 1] / having[count];
    if (estimate[count] <= 0) return;
  }
  discounts_ = estimate;
}

void NgramOrder::weigh_contexts() {
  for (std::size_t i = 0; i + 1 < contexts_.size(); ++i) {
    double total = 0, freed = 0;
    for (std::size_t ngram = contexts_[i].first; ngram < contexts_[i + 1].first; ++ngram) {
      total += counts_[ngram];
      freed += discount(counts_[ngram]);
    }
    contexts_[i].total = total;
    contexts_[i].backoff_weight = freed / total;
  }
}

double NgramOrder::interpolate(std::uint64_t context, std::uint32_t token, double lower) const {
  const auto found = std::ranges::lower_bound(contexts_, context, {}, &Context::tokens);
  if (found == contexts_.end() || found->tokens != context || found + 1 == contexts_.end()) return lower;
  const std::span candidates(last_tokens_.data() + found->first, (found + 1)->first - found->first);
  const auto ngram = std::ranges::lower_bound(candidates, token);
  double frequency = 0;
  if (ngram != candidates.end() && *ngram == token) {
    const std::uint32_t count = counts_[found->first + static_cast<std::size_t>(ngram - candidates.begin())];
    frequency = (count - discount(count)) / found->total;
  }
  return frequency + found->backoff_weight * lower;
}

KneserNeyTrigram::KneserNeyTrigram(std::span<const std::int32_t> tokens, std::int64_t vocab_size)
    : vocab_size_(vocab_size) {
  check_tokens(tokens, vocab_size);
  std::vector<std::uint64_t> ngrams;
  if (tokens.size() >= 3) ngrams.reserve(tokens.size() - 2);
  std::uint64_t last_three = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    last_three = ((last_three << kTokenBits) | static_cast<std::uint64_t>(tokens[i])) & low_tokens(3);
    if (i >= 2) ngrams.push_back(last_three);
  }
  std::ranges::sort(ngrams);
  orders_[2] = NgramOrder(ngrams);
  ngrams = shortened(ngrams, 2);
  orders_[1] = NgramOrder(ngrams);
  ngrams = shortened(ngrams, 1);
  orders_[0] = NgramOrder(ngrams);
}

double KneserNeyTrigram::probability(std::span<const std::int32_t> context, std::int32_t token) const {
  check_tokens(context.last(std::min<std::size_t>(context.size(), 2)), vocab_size_);
  check(token >= 0 && token < vocab_size_, "a token outside the vocabulary");
  double probability = 1.0 / static_cast<double>(vocab_size_);
  std::uint64_t packed = 0;  // last `order` tokens of the context
  for (std::size_t order = 0; order < orders_.size() && order <= context.size(); ++order) {
    if (order > 0) packed |= static_cast<std::uint64_t>(context[context.size() - order]) << (kTokenBits * (order - 1));
    probability = orders_[order].interpolate(packed, static_cast<std::uint32_t>(token), probability);
  }
  return probability;
}

double KneserNeyTrigram::nats_per_token(std::span<const std::int32_t> tokens, std::int64_t first_target) const {
  return mean_nats(tokens, first_target, [this](std::span<const std::int32_t> context, std::int32_t token) {
    return probability(context, token);
  });
}

}  // namespace teratron
