// Which corpus each sample of a blend comes from, and which of that corpus' samples it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// A row of corpora without end, in which every beginning has the shares that the weights ask for: among the first n
// samples, corpus i has n * w_i / sum(w) of them but for less than one. It is the order of R. Tijdeman ("The chairman
// assignment problem", Discrete Mathematics 32, 1980): of K corpora none is ever off by more than 1 - 1 / (2K - 2), and
// no order promises less for all weights.
//
// The weights are taken as whole numbers of samples in a period, after which the row begins again. So any position can
// be asked for, the table is as long as a period and does not grow with the run, and shares stay exact for ever.
// Weights with up to six decimals whose period is at most kMostPeriod samples are kept as they are ("0.7 0.3": 7 and 3
// of 10). Others are rounded to whole numbers of kMostPeriod, at least 1 each, so such a share is wrong by about a
// millionth at most. Memory: 5 bytes a sample of the period. Immutable; safe to read from many threads.
class BlendOrder {
 public:
  static constexpr std::int64_t kMostPeriod = 1 << 20;
  static constexpr std::size_t kMostCorpora = 255;

  // 1 to kMostCorpora finite weights above zero.
  explicit BlendOrder(std::span<const double> weights);

  // Samples of each corpus in a period, and of all.
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

  std::vector<std::int64_t> shares_;
  std::vector<std::uint8_t> corpora_;      // of each sample of the period
  std::vector<std::uint32_t> slots_;       // where in the period each corpus' samples are, corpus by corpus
  std::vector<std::int64_t> first_slots_;  // of each corpus in slots_, and the end of the last
};

}  // namespace teratron
