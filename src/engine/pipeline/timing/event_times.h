// EventTimes: when the results of a schedule's actions exist.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "pipeline/dependencies.h"
#include "pipeline/timing/costs.h"

namespace teratron::pipeline {

// At first no event has happened. The schedule and the costs must outlive it.
class EventTimes {
 public:
  static constexpr double kNotYet = std::numeric_limits<double>::infinity();

  EventTimes(const Schedule& schedule, const Costs& costs)
      : schedule_(schedule), costs_(costs), times_(events(schedule), kNotYet) {}

  // When the stage has everything that its action needs; kNotYet if an event has not happened yet.
  double arrival(int stage, const Action& action) const {
    double time = 0;
    for_each_need(schedule_, stage, action, [&](const Event& need) {
      const bool here = schedule_.stage_of(need.cell) == stage;
      const double transfer = here ? 0 : costs_.transfer(need.micro_batch, need.slice);
      time = std::max(time, times_[number_of(schedule_, need)] + transfer);
    });
    return time;
  }

  void happens(const Event& event, double time) { times_[number_of(schedule_, event)] = time; }
  // Records all events that the stage's action brings about.
  void happens(int stage, const Action& action, double time) {
    for_each_result(schedule_, stage, action, [&](const Event& event) { happens(event, time); });
  }

 private:
  const Schedule& schedule_;
  const Costs& costs_;
  std::vector<double> times_;  // by event
};

}  // namespace teratron::pipeline
