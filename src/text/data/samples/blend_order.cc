#include "data/samples/blend_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace teratron {
namespace {

// Product of a share and a position, both below 2^63.
using Wide = unsigned __int128;

constexpr long double kOne = 0x1p62L;

// The value rounded to 64 bits, which x86's long double has: a blend's order must not depend on the processor, and
// Arm's has 113 (Veltkamp's splitting, as in Dekker, Numerische Mathematik 18, 1971).
long double in_64_bits(long double value) {
  constexpr int kMore = std::numeric_limits<long double>::digits - 64;
  static_assert(kMore >= 0);
  if constexpr (kMore > 0) {
    const long double scaled = value * (std::scalbn(1.0L, kMore) + 1);
    value = scaled - (scaled - value);
  }
  return value;
}

Wide product(std::int64_t a, std::int64_t b) { return static_cast<Wide>(a) * static_cast<Wide>(b); }

}  // namespace

DivisorOrder::DivisorOrder(std::span<const double> weights) {
  const long double largest = *std::ranges::max_element(weights);  // dividing by it first keeps the sum finite
  long double sum = 0;
  for (const double weight : weights) sum = in_64_bits(sum + in_64_bits(weight / largest));
  for (const double weight : weights) {
    const long double share = in_64_bits(in_64_bits(weight / largest) / sum);
    shares_.push_back(std::max<std::int64_t>(1, std::llround(share * kOne)));
  }
  total_ = std::reduce(shares_.begin(), shares_.end());
}

double DivisorOrder::share(std::size_t corpus) const {
  return static_cast<double>(shares_[corpus]) / static_cast<double>(total_);
}

// Equal ones come in the order of their corpora.
bool DivisorOrder::is_before(std::size_t corpus, std::int64_t sample, std::size_t other,
                             std::int64_t others_sample) const {
  const Wide own = product(2 * sample + 1, shares_[other]), others = product(2 * others_sample + 1, shares_[corpus]);
  return own < others || (own == others && corpus < other);
}

DivisorOrder::Beginning DivisorOrder::beginning(std::int64_t n) const {
  // Shares of n samples, rounded to the nearest, are a lower bound; they sum to at most n.
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
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  Wide before = static_cast<Wide>(sample);
  for (std::size_t other = 0; other < shares_.size(); ++other) {
    if (other == corpus) continue;
    // Number of samples whose 2 j + 1 is below `bound` over this corpus' share, or at it.
    const Wide bound = product(2 * sample + 1, shares_[other]), share = static_cast<Wide>(shares_[corpus]);
    const Wide most = other < corpus ? bound / share : (bound + share - 1) / share - 1;
    before = std::min(before + (most + 1) / 2, kMost);
  }
  return static_cast<std::int64_t>(before);
}

namespace {

// The weights times `scale`, if all are then whole numbers with a period that is short enough.
std::optional<std::vector<std::int64_t>> whole_numbers(std::span<const double> weights, double scale) {
  std::vector<std::int64_t> numbers;
  std::int64_t divisor = 0, sum = 0;
  for (const double weight : weights) {
    const double scaled = weight * scale, number = std::round(scaled);
    // A decimal as a double, times a power of ten, is off by a few units in the last digit, 2^-52 each.
    if (number < 1 || number > 0x1p40 || std::abs(scaled - number) > 1e-14 * scaled) return std::nullopt;
    numbers.push_back(static_cast<std::int64_t>(number));
    divisor = std::gcd(divisor, numbers.back());
    sum += numbers.back();
  }
  if (sum / divisor > BlendOrder::kMostPeriod) return std::nullopt;
  for (std::int64_t& number : numbers) number /= divisor;
  return numbers;
}

// Samples of each corpus in a period; empty if there is none.
std::optional<std::vector<std::int64_t>> shares_of(std::span<const double> weights) {
  for (double scale = 1; scale <= 1e6; scale *= 10) {
    if (auto numbers = whole_numbers(weights, scale)) return numbers;
  }
  return std::nullopt;
}

// Tijdeman's order of one period. A corpus may have its next sample once it is 1 / bound short of its share, and must
// have it before it is 1 - 1 / bound short; the one with the earliest deadline is next.
std::vector<std::uint8_t> one_period(std::span<const std::int64_t> shares) {
  const std::int64_t period = std::reduce(shares.begin(), shares.end());
  const std::int64_t bound = std::max<std::int64_t>(2, 2 * static_cast<std::int64_t>(shares.size()) - 2);
  std::vector<std::int64_t> counts(shares.size());
  std::vector<std::uint8_t> corpora(static_cast<std::size_t>(period));
  for (std::int64_t slot = 0; slot < period; ++slot) {
    std::optional<std::size_t> next;
    // The deadline of corpus i, in units of period / bound: (its sample's number * bound - 1) / share.
    const auto wait = [&](std::size_t i) { return (counts[i] + 1) * bound - 1; };
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if ((shares[i] * (slot + 1) - counts[i] * period) * bound < period) continue;
      if (!next || wait(i) * shares[*next] < wait(*next) * shares[i]) next = i;
    }
    check(next.has_value(), "BlendOrder: no corpus is below its share");
    ++counts[*next];
    corpora[static_cast<std::size_t>(slot)] = static_cast<std::uint8_t>(*next);
  }
  check(std::ranges::equal(counts, shares), "BlendOrder: a period has other shares");
  return corpora;
}

}  // namespace

BlendOrder::BlendOrder(std::span<const double> weights) {
  check(!weights.empty() && weights.size() <= kMostCorpora, "BlendOrder: one corpus to kMostCorpora");
  for (const double weight : weights) check(std::isfinite(weight) && weight > 0, "BlendOrder: a weight above zero");
  std::optional<std::vector<std::int64_t>> shares = shares_of(weights);
  if (!shares) {
    without_period_.emplace(weights);
    return;
  }
  shares_ = *std::move(shares);
  corpora_ = one_period(shares_);
  first_slots_.push_back(0);
  for (const std::int64_t share : shares_) first_slots_.push_back(first_slots_.back() + share);
  slots_.resize(corpora_.size());
  std::vector<std::int64_t> next = first_slots_;
  for (std::size_t slot = 0; slot < corpora_.size(); ++slot) {
    slots_[static_cast<std::size_t>(next[corpora_[slot]]++)] = static_cast<std::uint32_t>(slot);
  }
}

double BlendOrder::share(std::size_t corpus) const {
  if (without_period_) return without_period_->share(corpus);
  return static_cast<double>(shares_[corpus]) / static_cast<double>(period());
}

std::span<const std::uint32_t> BlendOrder::slots(std::size_t corpus) const {
  check(corpus < shares_.size(), "BlendOrder: no such corpus");
  return std::span(slots_).subspan(static_cast<std::size_t>(first_slots_[corpus]),
                                   static_cast<std::size_t>(shares_[corpus]));
}

BlendOrder::Entry BlendOrder::entry(std::int64_t position) const {
  check(position >= 0, "BlendOrder: position");
  if (without_period_) {
    const DivisorOrder::Beginning before = without_period_->beginning(position);
    return {before.next, before.counts[before.next]};
  }
  const std::size_t corpus = corpora_[static_cast<std::size_t>(position % period())];
  return {corpus, count(corpus, position)};
}

std::int64_t BlendOrder::position(const Entry& entry) const {
  check(entry.sample >= 0, "BlendOrder: sample");
  if (without_period_) return without_period_->position(entry.corpus, entry.sample);
  const std::int64_t share = static_cast<std::int64_t>(slots(entry.corpus).size());
  return entry.sample / share * period() + slots(entry.corpus)[static_cast<std::size_t>(entry.sample % share)];
}

std::int64_t BlendOrder::count(std::size_t corpus, std::int64_t samples) const {
  if (without_period_) return without_period_->beginning(samples).counts[corpus];
  const std::span<const std::uint32_t> places = slots(corpus);
  const auto in_period =
      std::ranges::lower_bound(places, samples % period(), {}, [](std::uint32_t slot) { return std::int64_t{slot}; });
  return samples / period() * shares_[corpus] + (in_period - places.begin());
}

}  // namespace teratron
