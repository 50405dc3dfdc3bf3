// Times of a schedule's actions, given their costs.
#pragma once

#include <vector>

#include "pipeline/memory.h"
#include "pipeline/schedule.h"
#include "pipeline/timing/costs.h"

namespace teratron::pipeline {

struct TimedAction {
  Action action;
  double start = 0, end = 0;  // milliseconds since the iteration began
};

struct Simulation {
  std::vector<std::vector<TimedAction>> actions;  // [stage], in the schedule's order
  double iteration = 0;                           // milliseconds until the last stage is done
  std::vector<double> busy;                       // [stage]: milliseconds at work

  // The part of all stages' time in which they wait.
  double bubble_share() const;
};

// A stage starts an action as soon as it is done with the one before and all that the action needs is there. Sends take
// no time of the sender, and transfers do not slow one another down. InternalError where the schedule comes to no end.
Simulation simulate(const Schedule& schedule, const Costs& costs);

}  // namespace teratron::pipeline
