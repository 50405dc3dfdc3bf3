// A row of corpora by exact shares, of which any place is computed and none is stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Sample j of corpus i (j from 0) stands by (2 j + 1) / w_i among all others: the row in which the divisor method of A.
// Sainte-Lague and D. Webster gives out seats. Its beginnings have their shares for ever: of K corpora, corpus i with
// the share s is off by less than 1/2 + s (K - 2) / 2 samples, which of two or three corpora is less than one, and so
// wherever no share is larger than 1 / (K - 2).
//
// Shares are whole multiples of 2^-62, at least one. Rounding them adds less than 10^-8 of a sample after 10^10. A
// place takes O(K^2) steps at most. Immutable; safe to use from many threads.
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
  // How many samples stand before this one.
  std::int64_t position(std::size_t corpus, std::int64_t sample) const;

 private:
  bool is_before(std::size_t corpus, std::int64_t sample, std::size_t other, std::int64_t others_sample) const;

  std::vector<std::int64_t> shares_;
  std::int64_t total_ = 0;  // of shares_
};

}  // namespace teratron
