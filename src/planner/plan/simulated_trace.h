// Simulated step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing draw (telemetry/trace_file.h).
#pragma once

#include <span>
#include <string>

#include "pipeline/timing/simulate.h"
#include "simulation/pipeline_run.h"

namespace teratron::plan {

// Text of the file: for each stage a row of its passes and, where there are spans, of its update after them. Other rows
// have what its devices do beside the passes: messages, sums, gathers.
std::string trace_of(const pipeline::Simulation& timeline, std::span<const simulation::Span> spans = {});

}  // namespace teratron::plan
