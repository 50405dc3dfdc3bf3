// The pipeline that a training configuration asks for: which layers each cell has, how sequences are cut, and what
// every stage does in a step. A pure function of the configuration (and of measured costs, where there are some), so
// that every rank plans the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/costs.h"
#include "pipeline/generators.h"
#include "slicing/profile.h"
#include "train/config.h"

namespace teratron {

struct PipelinePlan {
  pipeline::ScheduleKind kind = pipeline::ScheduleKind::k1F1B;
  pipeline::Schedule schedule;             // of the most micro-batches that any rank ever runs
  std::vector<std::int64_t> slice_tokens;  // empty: sequences run whole
  std::vector<std::int64_t> cell_layers;
  pipeline::Costs costs;     // what was planned with
  bool is_measured = false;  // in milliseconds; else in forward passes of a stage, tokens all alike
};

// `config` has no faults. `profile`: what slices cost in a stage; nullptr: not measured. InternalError where
// --token-slices is auto and there is none.
PipelinePlan plan_pipeline(const TrainConfig& config, const slicing::Profile* profile = nullptr);

// For people, in a line or two; empty where one stage runs sequences whole.
std::string text_of(const PipelinePlan& plan);

}  // namespace teratron
