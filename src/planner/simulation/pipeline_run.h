// One training step of a pipeline on a cluster: the schedule's passes on each stage's devices, messages between stages,
// sums of gradients over the copies of the model, and the update. Transfers run beside the passes and share the links.
//
// Tensor-parallel ranks of a stage do the same at the same time, and so do the copies of the model. One rank of each
// stage of the first copy is simulated, and each port that it shares with others has the load of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "pipeline/schedule.h"
#include "pipeline/timing/costs.h"
#include "pipeline/timing/simulate.h"

namespace teratron::simulation {

// Ranks are numbered as comm/rank_coordinates.h does: tensor innermost, then pipeline, data outermost.
struct PipelineWork {
  pipeline::Schedule schedule;
  pipeline::Costs costs;  // milliseconds of passes on a stage's ranks; transfers are not used
  std::int64_t tensor = 1, data = 1;
  std::vector<double> message_bytes;   // [column of costs] between stages, of one tensor-parallel rank; empty: none
  std::vector<double> gradient_bytes;  // [cell] of a rank, to be summed over the copies; empty: none
  // Equal pieces of a cell's gradients (its layers). Each is summed when the cell's last pass has finished it. 0: all
  // sums of a stage begin after its last pass.
  int gradient_pieces = 1;
  double tied_bytes = 0;             // of a rank's part of the embedding, which first and last stage sum (0: not tied)
  bool shards_optimizer = false;     // reduce-scatter in place of all-reduce; weights are gathered after the update
  std::vector<double> weight_bytes;  // [cell] of a rank, gathered then; empty: none
  // shards_gradients: a piece's gradients are summed after every backward, and its weights are gathered before every
  // forward, while the piece before it computes. shards_weights: weights are gathered before every backward too.
  bool shards_gradients = false, shards_weights = false;
  std::vector<double> update_seconds;  // [stage]: the norm and AdamW; empty: none
};

struct StageUse {
  double busy = 0;             // seconds of passes, without what they wait for
  double bubble_share = 0;     // part of the time until the pipeline's last pass in which it runs no pass
  double message_seconds = 0;  // in which it sends or receives activations or gradients of them
  double sum_seconds = 0;      // of sums of its gradients and of gathers of its weights, which may run at the same time
};
struct LinkUse {
  std::string name;  // "InfiniBand 2 out": sends through the level's port 2, counted from 0
  double busy = 0;   // seconds with at least one message
  double bytes = 0;  // of all ranks that share the port
};
// A piece of work beside the passes.
struct Span {
  enum class Kind { kOutput, kInputGradient, kSum, kTiedSum, kUpdate, kGather };
  Kind kind = Kind::kOutput;
  int stage = 0;                                // the sender, or the stage that works
  int cell = -1, micro_batch = -1, slice = -1;  // -1: of none
  double start = 0, end = 0;                    // seconds
};

struct PipelineResult {
  double seconds = 0;           // of the update
  double pipeline_seconds = 0;  // until the last pass is done
  std::vector<StageUse> stages;
  std::vector<LinkUse> links;     // those that carried anything
  std::vector<Span> spans;        // empty unless keeps_spans
  pipeline::Simulation timeline;  // of one copy of the model, in milliseconds, for drawings
  std::int64_t events = 0;        // of the simulation

  double bubble_share() const { return timeline.bubble_share(); }
};

// InternalError: the schedule comes to no end, or the cluster has fewer devices than there are ranks.
PipelineResult simulate(const PipelineWork& work, const Cluster& cluster, bool keeps_spans = false);

}  // namespace teratron::simulation
