// Fastest steps of many requests, for pages that compare numbers of devices, batches, clusters and models.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/search/layout_search.h"
#include "plan/step_columns.h"

namespace teratron::plan {

struct FastestStep {
  bool fits = false;
  std::string layout, command;      // if none fits: the layout that needs least, and nothing
  std::int64_t memory = 0;          // bytes of the fullest rank
  std::vector<std::int64_t> kinds;  // of these, [names_of_memory_kinds()]
  // Zero and empty if it does not fit.
  StepTime time;
  StepParts parts;
  StepColumns columns;
};

// Kinds of a rank's memory: the arena's, then one for all that lies between its blocks or beside it.
std::vector<std::string> names_of_memory_kinds();

struct ComparedStep {
  PlanRequest request;
  std::size_t model = 0;  // a number for each model: requests with the same number share findings about its layouts
  FastestStep fastest;    // [out] empty where no layout has so many devices
};

// Plans the steps on all threads. `planned`: counts those that are done.
void plan_steps(std::span<ComparedStep> steps, std::atomic<std::int64_t>& planned);

}  // namespace teratron::plan
