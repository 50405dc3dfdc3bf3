// `teratron finetune` from code: the search, the runs of all seeds, and their scores.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "finetune/config.h"
#include "tasks/task.h"

namespace teratron {

// Result of a run's best checkpoint, or of an ensemble.
struct FinetuneResult {
  std::int64_t seed = 0, iteration = 0;
  TaskOutputValues validation_outputs, test_outputs;
  std::vector<TaskScore> validation, test;  // test: empty without labels
};

// Point of --search after its run.
struct SearchedPoint {
  SearchPoint point;
  std::int64_t iteration = 0;         // of its best checkpoint
  std::vector<TaskScore> validation;  // empty: training diverged
  // The first score. Where training diverged it is -infinity, not 0: a correlation may be negative.
  double score() const {
    return validation.empty() ? -std::numeric_limits<double>::infinity() : validation.front().value;
  }
};

struct FinetuneResults {
  std::vector<SearchedPoint> points;  // of --search; empty without it
  std::size_t chosen = 0;             // index of the best
  std::vector<FinetuneResult> runs;   // one per seed
  std::size_t median = 0;             // index of the run with the median of the validation's first score
  std::optional<FinetuneResult> ensemble;
  std::vector<std::int64_t> peak_memory;  // bytes, of every rank in order
  bool is_complete = false;               // false: ended early, by a signal or --exit-duration-in-mins
  int signal = 0;                         // signal that ended the runs, in every process; 0: none
};

// Starts the ranks and fine-tunes; predictions go to --save. Runs in --save are resumed. Only the process of the first
// rank gets results. UserError: a set without labels to score by; runs of other settings or data in --save; diverged
// training. EnvironmentError: as Run::run().
FinetuneResults finetune(const FinetuneConfig& config);

// Table of a search for people: a row per point, the chosen one marked.
std::string search_table(const std::vector<SearchedPoint>& points, std::size_t chosen);

}  // namespace teratron
