// The pipeline that a training configuration asks for: which layers each cell has, how sequences are cut, and what
// every stage does in a step. A pure function of the configuration (and of measured costs, where there are some), so
// that every rank plans the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/rank_coordinates.h"
#include "data/batch_sampler.h"
#include "executor/options.h"
#include "pipeline/generators.h"
#include "pipeline/timing/costs.h"
#include "slicing/cost/profile.h"
#include "train/config/config.h"

namespace teratron {

// What the stages do in an update.
struct UpdatePlan {
  pipeline::Schedule schedule;                  // of the most micro-batches that any rank ever runs
  std::vector<std::int64_t> micro_batch_sizes;  // sequences of each; the last one stands for all that follow
  std::int64_t samples_together = 1;            // BatchSettings'
  std::vector<pipeline::MicroBatchCut> cuts;    // likewise (ExecutorOptions::cuts); empty: sequences run whole
  pipeline::Costs costs;                        // what was planned with

  const std::vector<std::int64_t>& slices_of(int micro_batch) const;  // in tokens; empty: it runs whole
  // The samples of a rank in an update of so many.
  BatchSampler sampler(std::int64_t global_batch, GroupRank data) const {
    return {global_batch, micro_batch_sizes, data.rank, data.size, samples_together};
  }
};

struct PipelinePlan : UpdatePlan {
  pipeline::ScheduleKind kind = pipeline::ScheduleKind::k1F1B;
  std::vector<std::int64_t> cell_layers;
  bool is_measured = false;  // in milliseconds; else in forward passes of a stage, tokens all alike
  // Other ways to cut the same batch, which may be faster than they are predicted to be (train/slice_trial.h).
  std::vector<UpdatePlan> alternatives;

  std::size_t ways() const { return 1 + alternatives.size(); }
  const UpdatePlan& way(std::size_t number) const { return number == 0 ? *this : alternatives[number - 1]; }
  // Of ExecutorOptions, of all ways one after the other; and the number of a way's first micro-batch there.
  pipeline::Schedule schedule_of_all() const;
  std::vector<pipeline::MicroBatchCut> cuts_of_all(std::int64_t batch, std::int64_t tokens) const;
  std::int64_t largest_micro_batch(const TrainConfig& config) const;  // of any way and rank
  int first_micro_batch(std::size_t way) const;
};

// `config` has no faults. `profiles`: what slices cost in a stage, of micro-batches of one size or, for --token-slices
// joint, of several; none: not measured. InternalError where slices are to be chosen and there are none.
PipelinePlan plan_pipeline(const TrainConfig& config, slicing::Profiles profiles = {});

// For people, in a line or two; empty where one stage runs sequences whole.
std::string text_of(const PipelinePlan& plan);

}  // namespace teratron
