// Page of a plan: whether a model fits, how it is split, what fills its memory, how its pipeline works, how long its
// training takes and what it costs, by a choice of models and clusters and sliders for devices, sequences an update and
// tokens. All steps were planned before; the page's script picks one and multiplies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace teratron {

// A cluster that can be chosen.
struct PlannedCluster {
  std::string name, device;  // for people
  std::int64_t room = 0;     // bytes of a device
  double watts = 0;          // of a device at full load; 0: not known
};

// Timeline of a step in columns of equal time (plan/step_columns.h).
struct PlannedTimeline {
  std::vector<std::pair<double, double>> windows;  // seconds of the step: the whole, or its beginning and its end
  std::vector<int> stages;                         // that are drawn
  std::vector<std::string> rows;                   // [stage]: a letter a column of every window
};

// The fastest step on so many devices with so many sequences an update.
struct PlannedStep {
  std::size_t model = 0, cluster = 0;  // of PlanPage::models and ::clusters
  std::int64_t devices = 0, sequences = 0;
  bool fits = false;
  std::string layout, command;      // where it does not fit: the layout that needs least, and nothing
  std::int64_t memory = 0;          // bytes of the fullest rank
  std::vector<std::int64_t> kinds;  // of these, [PlanPage::kinds]
  double seconds = 0, tokens_per_second = 0, mfu = 0;
  // Seconds of the step by their cause, which sum up to `seconds`.
  double compute = 0, recompute = 0, tensor = 0, bubble = 0, after = 0;
  PlannedTimeline timeline;
};

struct PlanPage {
  std::string model, cluster;       // for people
  double tokens = 0;                // to train on, at first
  double price = 0;                 // dollars of a device and hour, at first
  std::vector<std::string> models;  // that can be chosen, for people
  std::vector<PlannedCluster> clusters;
  std::vector<std::string> kinds;  // of memory, at most 8
  std::vector<PlannedStep> steps;  // for every model, cluster and number of devices, every number of sequences
  std::size_t first = 0;           // the step that is shown first
};

std::string plan_page(const PlanPage& plan);

}  // namespace teratron
