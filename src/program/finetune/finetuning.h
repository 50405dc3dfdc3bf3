// `teratron finetune` from code: the search, where there is one, the runs of all seeds, and their scores.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "finetune/config.h"
#include "tasks/task.h"

namespace teratron {

// A run's best checkpoint, or an ensemble.
struct FinetuneResult {
  std::int64_t seed = 0, iteration = 0;
  TaskOutputValues validation_outputs, test_outputs;
  std::vector<TaskScore> validation, test;  // test: none where its labels are not known
};

// A point of --search after its run.
struct SearchedPoint {
  SearchPoint point;
  std::int64_t iteration = 0;                                                          // of its best checkpoint
  std::vector<TaskScore> validation;                                                   // none where training diverged
  double score() const { return validation.empty() ? -1 : validation.front().value; }  // in per cent
};

struct FinetuneResults {
  std::vector<SearchedPoint> points;  // of --search; empty without it
  std::size_t chosen = 0;             // of them
  std::vector<FinetuneResult> runs;   // of the seeds
  std::size_t median = 0;             // of them, by the validation's first score
  std::optional<FinetuneResult> ensemble;
  std::vector<std::int64_t> peak_memory;  // bytes, of every rank in order
  bool is_complete = false;               // else the runs ended early: by a signal, or --exit-duration-in-mins
  int signal = 0;                         // that ended them; in every process
};

// Starts the ranks and fine-tunes; predictions go to --save. What --save holds is gone on with. The process of the
// first rank alone gets results. UserError: a set without labels to score by; runs in --save of other settings or data;
// training that diverged. EnvironmentError: as Run::run().
FinetuneResults finetune(const FinetuneConfig& config);

}  // namespace teratron
