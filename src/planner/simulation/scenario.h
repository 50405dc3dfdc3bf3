// A pipeline to simulate, as a user describes it, and the result: how long its schedule takes and what it holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
#include "pipeline/generators.h"
#include "pipeline/memory.h"
#include "pipeline/timing/closed_form.h"
#include "pipeline/timing/simulate.h"

namespace teratron::simulation {

// The values of the options of `teratron simulate` with these names.
struct Scenario {
  pipeline::ScheduleKind schedule = pipeline::ScheduleKind::k1F1B;
  std::int64_t stages = 4, micro_batches = 8, virtual_stages = 1;
  std::string slices = "1";                        // pipeline/token_slices.h; may say the micro-batches, too
  double forward = 1, backward = 2, transfer = 0;  // milliseconds
  std::filesystem::path profile;                   // costs as measured, in place of forward and backward; empty: none
  std::int64_t tokens = 0;                         // of a sequence; 0: as slices or the profile say
  bool defer_weight_gradients = false;
  bool vocabulary_parallel = false;
  double head = 0;  // milliseconds of a stage's part of a micro-batch's head, where all stages share it
  // Whether the user gave micro_batches, and forward or backward. Other options may say these too.
  bool gives_micro_batches = false, gives_times = false;

  Faults faults() const;
};

struct ScenarioResult {
  pipeline::Schedule schedule;
  pipeline::Simulation simulation;
  std::vector<pipeline::MemoryPeak> peaks;  // by stage
  // The closed form of the named schedule with equal slices; none if micro-batches are cut in different ways, or stages
  // share the vocabulary.
  std::optional<pipeline::ClosedForm> closed_form;
  std::vector<std::int64_t> lengths;          // slices in tokens; empty: not known
  std::vector<pipeline::MicroBatchCut> cuts;  // if micro-batches are cut in different ways
  double work = 0;                            // milliseconds of the busiest stage
};

// Simulates a scenario without faults. UserError: its values, or its profile, do not fit one another.
ScenarioResult simulate(const Scenario& scenario);

}  // namespace teratron::simulation
