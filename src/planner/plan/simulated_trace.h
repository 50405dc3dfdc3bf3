// Simulated step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing draw (telemetry/trace_file.h).
#pragma once

#include <span>
#include <string>

#include "pipeline/timing/simulate.h"
#include "simulation/pipeline_run.h"

namespace teratron::plan {

// Text of the file: a row of passes for each stage and, where there are spans, rows of what its devices do beside them:
// messages, sums of gradients, the update.
std::string trace_of(const pipeline::Simulation& timeline, std::span<const simulation::Span> spans = {});

}  // namespace teratron::plan
