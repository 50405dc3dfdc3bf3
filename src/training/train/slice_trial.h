// Which of several ways to cut a batch is fastest, found out in a run's own first updates. A model of a noisy machine
// is off by some per cent, and so is a choice by it alone; every update of the trial trains like any other.
#pragma once

#include <cstddef>
#include <vector>

namespace teratron {

class SliceTrial {
 public:
  // The ways take turns, to and fro, kRounds times; their first turns are warm-ups. One way needs no trial.
  static constexpr std::size_t kRounds = 6;
  explicit SliceTrial(std::size_t ways) : seconds_(ways) {}

  bool is_open() const { return updates_ < kRounds * seconds_.size() && seconds_.size() > 1; }
  std::size_t way() const;  // of the update under way; once the trial is over, the fastest one
  // What the update under way took: the same number on all ranks, so that they all choose the same.
  void add(double seconds);
  // In the median, of each way; the trial is over.
  std::vector<double> medians() const;

 private:
  std::vector<std::vector<double>> seconds_;  // by way
  std::size_t updates_ = 0, fastest_ = 0;
};

}  // namespace teratron
