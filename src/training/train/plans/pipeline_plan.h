// The pipeline of a training configuration: layers of each cell, slices of sequences, actions of every stage. A pure
// function of the configuration (and of measured costs, where there are some), so that every rank plans the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rank_coordinates.h"
#include "data/batch_sampler.h"
#include "executor/options.h"
#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"
#include "settings/step_settings.h"
#include "slicing/cost/profile.h"

namespace teratron {

// An update of the most micro-batches that any rank ever runs; ranks that run fewer take the first ones.
struct PipelinePlan {
  pipeline::ScheduleKind kind = pipeline::ScheduleKind::k1F1B;
  pipeline::Schedule schedule;
  std::vector<std::int64_t> cell_layers;
  std::vector<std::int64_t> micro_batch_sizes;  // sequences of each; the last one stands for all that follow
  std::int64_t samples_together = 1;            // BatchSettings'
  std::vector<pipeline::MicroBatchCut> cuts;    // likewise (ExecutorOptions::cuts); empty: sequences run whole
  bool cuts_by_documents = false;               // `cuts` has the longest slices of any micro-batch
  pipeline::Costs costs;                        // the assumed costs of `schedule`
  bool is_measured = false;  // costs in milliseconds; else in forward passes of a stage, all tokens alike

  const std::vector<std::int64_t>& slices_of(int micro_batch) const;  // in tokens; empty: it runs whole
  // A rank's samples in an update of a global batch.
  BatchSampler sampler(std::int64_t global_batch, GroupRank data) const {
    return {global_batch, micro_batch_sizes, data.rank, data.size, samples_together};
  }
};

// `settings` have no faults. `profile`: measured costs of slices; nullptr: not measured, which --token-slices auto does
// not allow (InternalError).
PipelinePlan plan_pipeline(const StepSettings& settings, const slicing::Profile* profile = nullptr);

// Text for people, a line or two; empty where one stage runs sequences whole.
std::string text_of(const PipelinePlan& plan);

}  // namespace teratron
