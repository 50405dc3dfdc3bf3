// Progress of a training run, for people. On a terminal it is a live line, of which one stays every log_interval
// iterations. Elsewhere it is a line every log_interval iterations with the fields of Megatron-LM's log.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "console/live_line.h"

namespace teratron {

struct ProgressScale {
  std::int64_t total_iterations = 0;
  std::int64_t log_interval = 10;  // iterations per line, and of an average
  std::int64_t total_samples = 0;
  double flops_per_token = 0;
  double peak_flops = 0;  // per second, all ranks; 0: unknown, and MFU (the model's use of it) is not shown
};

struct ProgressPoint {
  std::int64_t iteration = 0;          // the one just done, counted from 1
  std::int64_t global_batch_size = 0;  // of this iteration; it may grow over a run
  std::int64_t consumed_samples = 0;
  std::int64_t tokens = 0;  // of this iteration, without padding
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  double seconds = 0;  // of this iteration
  struct Rate {
    std::string_view name;  // which outlives the progress
    double value = 0;
  };
  std::vector<Rate> rates = {};  // shown after the loss; those of every point have the same names
};

class Progress {
 public:
  // Writes to `file`, which must outlive it: a live line of at most `columns` (terminal_columns()), or lines where that
  // is 0.
  Progress(std::FILE* file, int columns, const ProgressScale& scale);

  void iteration(const ProgressPoint& point);
  // Writes another line (a validation, a checkpoint) above the live line.
  void message(std::string_view text);

  // Lines of the points so far, averaged over the last log_interval.
  std::string live_line() const;
  std::string log_line() const;

 private:
  double mean(double ProgressPoint::*member) const;
  // Rate of a count over the averaged points.
  double per_second(std::int64_t ProgressPoint::*count) const;
  double flops_per_second() const { return per_second(&ProgressPoint::tokens) * scale_.flops_per_token; }
  // Averaged rates, each with what stands before and after its name.
  std::string rates(std::string_view before, std::string_view after) const;
  std::string use_of_peak() const;  // "43.2 %"

  std::FILE* file_;
  LiveLine live_;
  ProgressScale scale_;
  std::deque<ProgressPoint> recent_;  // at most log_interval of them
  double seconds_since_shown_ = 0;
};

}  // namespace teratron
