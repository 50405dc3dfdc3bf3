#include "slicing/document_cuts.h"

#include <algorithm>

#include "base/error.h"
#include "slicing/least_sum.h"

namespace teratron::slicing {
namespace {

constexpr std::int64_t kLeastPlaces = 256, kPlacesASlice = 16;
constexpr double kTolerance = 0.01;

// A place where slices may begin and end.
struct Place {
  std::int64_t token = 0;
  double work = 0;     // of all tokens before it
  double carried = 0;  // keys before it that the token there attends to, over all sequences
};

std::int64_t first_key_of(const DocumentSlices& slices, std::int64_t token, std::int32_t first_key) {
  return slices.window > 0 ? std::max<std::int64_t>(first_key, token - slices.window + 1) : first_key;
}

// Places at all multiples of the unit. If these are too many, consecutive ones form some hundred runs, and each run
// gives the place that carries the fewest keys.
class Places {
 public:
  Places(const DocumentSlices& slices, std::span<const std::int32_t> first_keys)
      : slices_(slices), units_(slices.tokens / slices.unit) {
    const std::int64_t wanted = std::min(units_, std::max(kLeastPlaces, kPlacesASlice * slices.count));
    std::int64_t run = 0;
    double work = 0;
    for (std::int64_t token = 0; token < slices.tokens; ++token) {
      const Sum here = sum_at(token, first_keys);
      if (token % slices.unit == 0) {
        const Place place{token, work, here.carried};
        const std::int64_t run_of_place = token / slices.unit * wanted / units_;
        if (places_.empty() || run_of_place > run) {
          places_.push_back(place);
          run = run_of_place;
        } else if (places_.size() > 1 && place.carried < places_.back().carried) {
          places_.back() = place;  // never the first place, which is the sequence's begin
        }
      }
      work += here.work;
    }
    places_.push_back({slices.tokens, work, 0});
  }

  const std::vector<Place>& all() const { return places_; }

 private:
  struct Sum {
    double work = 0, carried = 0;
  };
  Sum sum_at(std::int64_t token, std::span<const std::int32_t> first_keys) const {
    Sum sum;
    for (std::int64_t at = token; at < std::ssize(first_keys); at += slices_.tokens) {
      const std::int64_t first = first_key_of(slices_, token, first_keys[static_cast<std::size_t>(at)]);
      sum.work += 1 + slices_.key_cost * static_cast<double>(token + 1 - first);
      sum.carried += static_cast<double>(token - first);
    }
    return sum;
  }

  const DocumentSlices& slices_;
  std::int64_t units_;
  std::vector<Place> places_;
};

// The cut of least cost: indices into `places`, of the begin of each slice and of the end of the last one. `cost`: of a
// slice; `add`: combines the costs of slices. Empty: no cut has a finite cost.
template <class Cost, class Add>
std::vector<std::size_t> best_cut(const std::vector<Place>& places, const DocumentSlices& slices, const Cost& cost,
                                  const Add& add) {
  const auto count = static_cast<std::size_t>(slices.count);
  std::vector<double> best(places.size(), kNever), next;
  std::vector<std::vector<std::size_t>> begins(count, std::vector<std::size_t>(places.size()));
  best.front() = 0;
  for (std::size_t slice = 0; slice < count; ++slice) {
    next.assign(places.size(), kNever);
    for (std::size_t end = slice + 1; end < places.size(); ++end) {
      for (std::size_t begin = end; begin-- > 0;) {
        if (places[end].token - places[begin].token > slices.most_tokens()) break;
        const double sum = add(best[begin], cost(places[begin], places[end]));
        if (sum >= next[end]) continue;
        next[end] = sum;
        begins[slice][end] = begin;
      }
    }
    best.swap(next);
  }
  if (best.back() == kNever) return {};
  std::vector<std::size_t> cut(count + 1, places.size() - 1);
  for (std::size_t slice = count; slice-- > 0;) cut[slice] = begins[slice][cut[slice + 1]];
  return cut;
}

}  // namespace

std::int64_t DocumentSlices::most_tokens() const {
  const std::int64_t units = tokens / unit, quarters = 4 * std::int64_t{count};
  return std::min(tokens, (5 * units + quarters - 1) / quarters * unit);
}

std::vector<std::int64_t> cut_by_documents(const DocumentSlices& slices, std::span<const std::int32_t> first_keys) {
  check(slices.count >= 1 && slices.tokens % slices.unit == 0 && slices.count <= slices.tokens / slices.unit,
        "slices of whole units of tokens");
  check(!first_keys.empty() && std::ssize(first_keys) % slices.tokens == 0, "first keys of whole sequences");
  const std::vector<Place> places = Places(slices, first_keys).all();
  const auto work = [](const Place& begin, const Place& end) { return end.work - begin.work; };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const std::vector<std::size_t> even = best_cut(places, slices, work, larger);
  check(!even.empty(), "a cut into slices of no more than a quarter above even ones");
  double longest = 0;
  for (std::size_t i = 1; i < even.size(); ++i) longest = std::max(longest, work(places[even[i - 1]], places[even[i]]));
  const auto carried = [&](const Place& begin, const Place& end) {
    return work(begin, end) <= (1 + kTolerance) * longest ? begin.carried : kNever;
  };
  const std::vector<std::size_t> cut = best_cut(places, slices, carried, std::plus());
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i < cut.size(); ++i) lengths.push_back(places[cut[i]].token - places[cut[i - 1]].token);
  return lengths;
}

}  // namespace teratron::slicing
