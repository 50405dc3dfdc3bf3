// Which corpus each sample of a blend comes from, and which of that corpus' samples it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/samples/divisor_order.h"

namespace teratron {

// A row of corpora without end, in which every beginning has the shares that the weights ask for, whatever position is
// asked for: among the first n samples, corpus i has n * w_i / sum(w) of them, but for a bound that does not grow.
//
// Weights with up to six decimals that are whole numbers of samples in a period of at most kMostPeriod ("0.7 0.3": 7
// and 3 of 10) are in the order of R. Tijdeman ("The chairman assignment problem", Discrete Mathematics 32, 1980): of K
// corpora none is ever off by more than 1 - 1 / (2K - 2), and no order promises less for all weights. It is a table of
// a period, 5 bytes a sample, after which the row begins again. Other weights have no period that a table could hold;
// theirs is the order of divisor_order.h: off by less than one sample for two or three corpora, and for more of them
// where no share is above 1 / (K - 2); else by less than 1/2 + share * (K - 2) / 2.
//
// Immutable; safe to read from many threads.
class BlendOrder {
 public:
  static constexpr std::int64_t kMostPeriod = 1 << 20;
  static constexpr std::size_t kMostCorpora = 255;

  // 1 to kMostCorpora finite weights above zero.
  explicit BlendOrder(std::span<const double> weights);

  double share(std::size_t corpus) const;
  // Samples of each corpus in a period, and of all; nothing and 0 where there is none.
  std::span<const std::int64_t> shares() const { return shares_; }
  std::int64_t period() const { return static_cast<std::int64_t>(corpora_.size()); }

  struct Place {
    std::size_t corpus = 0;
    std::int64_t sample = 0;  // its number among those of the corpus
    bool operator==(const Place&) const = default;
  };
  Place place(std::int64_t position) const;                            // position >= 0
  std::int64_t position(const Place& place) const;                     // the inverse
  std::int64_t count(std::size_t corpus, std::int64_t samples) const;  // of the corpus, among the first `samples`

 private:
  std::span<const std::uint32_t> slots(std::size_t corpus) const;

  std::optional<DivisorOrder> without_period_;  // instead of all that follows
  std::vector<std::int64_t> shares_;
  std::vector<std::uint8_t> corpora_;      // of each sample of the period
  std::vector<std::uint32_t> slots_;       // where in the period each corpus' samples are, corpus by corpus
  std::vector<std::int64_t> first_slots_;  // of each corpus in slots_, and the end of the last
};

}  // namespace teratron
