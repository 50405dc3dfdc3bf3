// The corpus of each sample of a blend, and its number among that corpus' samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace teratron {

// Orders sample j of corpus i (j from 0) by (2 j + 1) / w_i: the divisor method of A. Sainte-Lague and D. Webster for
// seats. Every prefix keeps its shares: of K corpora, corpus i with share s is off by less than 1/2 + s (K - 2) / 2
// samples, which is less than one for two or three corpora, and for more if no share is larger than 1 / (K - 2).
//
// Shares are multiples of 2^-62, at least one. Rounding adds less than 10^-8 of a sample after 10^10. A look-up takes
// at most O(K^2) steps. Immutable; safe to use from many threads.
class DivisorOrder {
 public:
  explicit DivisorOrder(std::span<const double> weights);  // finite and above zero

  double share(std::size_t corpus) const;
  // Samples of each corpus among the first n, n < 2^62; and the corpus of the sample after them.
  struct Beginning {
    std::vector<std::int64_t> counts;
    std::size_t next = 0;
  };
  Beginning beginning(std::int64_t n) const;
  // Number of samples before this one; 2^63 - 1 where there are more.
  std::int64_t position(std::size_t corpus, std::int64_t sample) const;

 private:
  bool is_before(std::size_t corpus, std::int64_t sample, std::size_t other, std::int64_t others_sample) const;

  std::vector<std::int64_t> shares_;
  std::int64_t total_ = 0;  // sum of shares_
};

// An endless order of corpora, in which every prefix has the shares of the weights, whichever position is asked for:
// among the first n samples, corpus i has n * w_i / sum(w) of them, up to a constant bound.
//
// Weights with up to six decimals that are whole numbers of samples in a period of at most kMostPeriod ("0.7 0.3": 7
// and 3 of 10) use the order of R. Tijdeman ("The chairman assignment problem", Discrete Mathematics 32, 1980): of K
// corpora none is ever off by more than 1 - 1 / (2K - 2), and no order has a lower bound for all weights. It is a table
// of a period, 5 bytes a sample, which repeats. Other weights use DivisorOrder: off by less than one sample for two or
// three corpora, and for more if no share is above 1 / (K - 2); else by less than 1/2 + share * (K - 2) / 2.
//
// Immutable; safe to read from many threads.
class BlendOrder {
 public:
  static constexpr std::int64_t kMostPeriod = 1 << 20;
  static constexpr std::size_t kMostCorpora = 255;

  // 1 to kMostCorpora finite weights above zero.
  explicit BlendOrder(std::span<const double> weights);

  double share(std::size_t corpus) const;
  // Samples of each corpus in a period, and their sum; empty and 0 if there is no period.
  std::span<const std::int64_t> shares() const { return shares_; }
  std::int64_t period() const { return static_cast<std::int64_t>(corpora_.size()); }

  struct Entry {
    std::size_t corpus = 0;
    std::int64_t sample = 0;  // its number among those of the corpus
    bool operator==(const Entry&) const = default;
  };
  Entry entry(std::int64_t position) const;                            // position >= 0
  std::int64_t position(const Entry& entry) const;                     // the inverse
  std::int64_t count(std::size_t corpus, std::int64_t samples) const;  // of the corpus, among the first `samples`

 private:
  std::span<const std::uint32_t> slots(std::size_t corpus) const;

  std::optional<DivisorOrder> without_period_;  // instead of the tables below
  std::vector<std::int64_t> shares_;
  std::vector<std::uint8_t> corpora_;      // of each sample of the period
  std::vector<std::uint32_t> slots_;       // index in the period of each corpus' samples, corpus by corpus
  std::vector<std::int64_t> first_slots_;  // offset of each corpus in slots_, and the end of the last
};

}  // namespace teratron
