// Timeline of a step in columns of equal time: a letter a column, small enough for hundreds of steps in one page.
#pragma once

#include <string>
#include <vector>

#include "simulation/pipeline_run.h"

namespace teratron::plan {

struct TimeWindow {
  double begin = 0, end = 0;  // seconds of the step
};

struct StepColumns {
  // The whole step; or its beginning and its end, where columns of the whole would hide passes.
  std::vector<TimeWindow> windows;
  std::vector<int> stages;  // that are drawn: all, or some at even distances
  // A row a stage, its windows after one another: what the stage does in the middle of each column. F forward, B
  // backward or gradients of inputs, W gradients of weights, H the vocabulary that stages share, S sums of gradients
  // and the update, - waiting. Small letters are those of odd micro-batches.
  std::vector<std::string> rows;
};

// `columns`: of a row, at least 2.
StepColumns columns_of(const simulation::PipelineResult& result, int columns = 160, int most_stages = 16);

}  // namespace teratron::plan
