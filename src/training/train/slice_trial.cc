#include "train/slice_trial.h"

#include <algorithm>

#include "base/error.h"
#include "base/median.h"

namespace teratron {

std::size_t SliceTrial::way() const {
  if (!is_open()) return fastest_;
  const std::size_t ways = seconds_.size(), place = updates_ % ways;
  return updates_ / ways % 2 == 0 ? place : ways - 1 - place;
}

void SliceTrial::add(double seconds) {
  check(is_open(), "a trial that is over takes no more times");
  const bool is_warm_up = updates_ < seconds_.size();
  if (!is_warm_up) seconds_[way()].push_back(seconds);
  ++updates_;
  if (is_open()) return;
  const std::vector<double> all = medians();
  fastest_ = static_cast<std::size_t>(std::ranges::min_element(all) - all.begin());
}

std::vector<double> SliceTrial::medians() const {
  std::vector<double> all;
  for (const std::vector<double>& times : seconds_) all.push_back(median(times));
  return all;
}

}  // namespace teratron
