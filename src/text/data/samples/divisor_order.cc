#include "data/samples/divisor_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace teratron {
namespace {

// Products of a share and a position, both below 2^63.
using Wide = unsigned __int128;

constexpr long double kOne = 0x1p62L;

Wide product(std::int64_t a, std::int64_t b) { return static_cast<Wide>(a) * static_cast<Wide>(b); }

}  // namespace

DivisorOrder::DivisorOrder(std::span<const double> weights) {
  const long double largest = *std::ranges::max_element(weights);  // dividing by it first keeps the sum finite
  long double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  for (const double weight : weights) {
    shares_.push_back(std::max<std::int64_t>(1, std::llround(weight / largest / sum * kOne)));
  }
  total_ = std::reduce(shares_.begin(), shares_.end());
}

double DivisorOrder::share(std::size_t corpus) const {
  return static_cast<double>(shares_[corpus]) / static_cast<double>(total_);
}

// Of equal ones the first corpus' comes first.
bool DivisorOrder::is_before(std::size_t corpus, std::int64_t sample, std::size_t other,
                             std::int64_t others_sample) const {
  const Wide own = product(2 * sample + 1, shares_[other]), others = product(2 * others_sample + 1, shares_[corpus]);
  return own < others || (own == others && corpus < other);
}

DivisorOrder::Beginning DivisorOrder::beginning(std::int64_t n) const {
  // Shares of so many samples, rounded to the nearest, are a beginning, and of n samples at most.
  const auto corpora = static_cast<std::int64_t>(shares_.size());
  const std::int64_t fewer = std::max<std::int64_t>(0, n - corpora / 2 - 1);
  Beginning found;
  std::int64_t left = n;
  for (const std::int64_t share : shares_) {
    const Wide rounded = (2 * product(fewer, share) + static_cast<Wide>(total_)) / (2 * static_cast<Wide>(total_));
    found.counts.push_back(static_cast<std::int64_t>(rounded));
    left -= found.counts.back();
  }
  while (true) {
    found.next = 0;
    for (std::size_t i = 1; i < shares_.size(); ++i) {
      if (is_before(i, found.counts[i], found.next, found.counts[found.next])) found.next = i;
    }
    if (left-- == 0) return found;
    ++found.counts[found.next];
  }
}

std::int64_t DivisorOrder::position(std::size_t corpus, std::int64_t sample) const {
  std::int64_t before = sample;
  for (std::size_t other = 0; other < shares_.size(); ++other) {
    if (other == corpus) continue;
    // Those with 2 j + 1 below `bound` over this corpus' share, or at it.
    const Wide bound = product(2 * sample + 1, shares_[other]), share = static_cast<Wide>(shares_[corpus]);
    const Wide most = other < corpus ? bound / share : (bound + share - 1) / share - 1;
    before += static_cast<std::int64_t>((most + 1) / 2);
  }
  return before;
}

}  // namespace teratron
