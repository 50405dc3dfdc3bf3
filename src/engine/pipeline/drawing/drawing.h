// A simulated schedule as a picture: stages downward, time to the right.
#pragma once

#include <string>
#include <vector>

#include "pipeline/schedule.h"
#include "pipeline/timing/simulate.h"

namespace teratron::pipeline {

struct Picture {
  const Schedule& schedule;
  const Simulation& simulation;
  std::string title;
};

// SVG, which any browser shows: pictures below one another, on one scale of time so that lengths compare. The width is
// that of `span` milliseconds, or of the longest iteration where that is longer. Forwards are blue, backwards green,
// input gradients teal, weight gradients amber, joint passes purple, waiting grey. A block says its micro-batch, and
// its slice where there are several.
std::string to_svg(const std::vector<Picture>& pictures, double span = 0);

// Text for a terminal: a line a stage, a legend below. Forward of the n-th slice of all micro-batches is the last digit
// of n, backward (or the input's gradient) the n-th letter, a weight gradient '+', a joint pass '#', waiting '.'. Empty
// if actions would take less than a column within `columns`.
std::string to_text(const Schedule& schedule, const Simulation& simulation, int columns);

}  // namespace teratron::pipeline
