// The pipeline that a training configuration asks for: which layers each cell has, how sequences are cut, and what
// every stage does in a step. A pure function of the configuration (and of measured costs, where there are some), so
// that every rank plans the same.
#pragma once

#include <cstdint>
#include <optional>
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

// The schedule that --schedule names; where it says auto, seq1f1b if tokens are sliced and else 1f1b.
pipeline::ScheduleKind schedule_kind(const TrainConfig& config);

// The numbers of "5,7"; nothing if it is not such a list.
std::optional<std::vector<std::int64_t>> comma_separated(std::string_view text);

// Layers of each cell: those of --pipeline-layout, or as many in each, the first ones one more where they don't divide.
std::vector<std::int64_t> cell_layers(const TrainConfig& config);

// `config` has no faults. `profile`: what slices cost in a stage; nullptr: not measured. InternalError where
// --token-slices is auto and there is none.
PipelinePlan plan_pipeline(const TrainConfig& config, const slicing::Profile* profile = nullptr);

// For people, in a line or two; empty where one stage runs sequences whole.
std::string text_of(const PipelinePlan& plan);

}  // namespace teratron
