// A simulated step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing draw (telemetry/trace_file.h).
#pragma once

#include <span>
#include <string>

#include "pipeline/timing/simulate.h"
#include "simulation/pipeline_run.h"

namespace teratron {

// The passes of each stage, and beside them what else its devices do: messages, sums and the update.
std::string trace_of(const pipeline::Simulation& simulation, std::span<const simulation::Span> spans = {});

}  // namespace teratron
