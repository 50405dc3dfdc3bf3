// Times of the passes of one training step, run as training runs it: micro-batches of random tokens, all cut into the
// same slices, all ranks of the layout at work. The executor's trace is the clock.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "model/make_model.h"
#include "settings/step_settings.h"

namespace teratron {

// A model and what a pass's time depends on in a layout. The optimizer is AdamW, and there are no pairs of answers
// (--dpo), whose reference passes are not measured.
struct ProfileRequest {
  ModelConfig model;                            // vocabulary and positions filled in
  std::int64_t sequences = 1, tokens = 0;       // of a micro-batch
  std::int64_t logits_chunk = 256;              // 0: as memory allows
  std::vector<std::int64_t> cell_layers;        // of each stage; empty: as many in each
  Recompute recompute = Recompute::kNone;       // of all stages; where these differ, none
  std::optional<std::int64_t> kept_layers = 0;  // ExecutorOptions::kept_layers
  std::optional<WeightPacking> packed_weights = std::nullopt;
  std::optional<DType> weight_tiles = std::nullopt;  // of frozen weights, ExecutorOptions::weight_tiles
  bool sequence_parallel = false, shard_optimizer = false;
  std::string ranks = "threads";                                  // LaunchEnvironment::ranks_are()
  int repeats = 3;                                                // rounds over all slicings
  double most_seconds = std::numeric_limits<double>::infinity();  // of steps, after which no further round begins
};

// Training steps with these settings, which have no faults. `ranks`: LaunchEnvironment::ranks_are().
ProfileRequest profile_request(const StepSettings& settings, std::int64_t vocab_size, const std::string& ranks);

struct StepTimes {
  struct Pass {
    double forward = 0, backward = 0;  // backward: both parts, if there are two
    double backward_weight = 0;        // the second part
  };
  // Milliseconds, the same on every rank.
  std::vector<std::vector<Pass>> passes;  // [stage][micro-batch * slices + slice]: the mean of the stage's ranks
  double pipeline = 0;                    // until the last stage is done with its last pass
  double iteration = 0;                   // with sums of gradients and the update
};

class StepClock {
 public:
  // Clocks a schedule whose micro-batches are cut into slices of these tokens. Takes the memory of an executor. Every
  // rank of the mesh makes one and calls its members together.
  StepClock(const ProfileRequest& request, const pipeline::Schedule& schedule, const std::vector<std::int64_t>& slices,
            const std::shared_ptr<Mesh>& mesh, Backend& backend);

  StepTimes step();

 private:
  StepTimes shared(double step_start, double step_end) const;

  std::size_t slices_;
  Backend& backend_;
  std::unique_ptr<Model> model_;
  Executor executor_;
  std::vector<Parameter*> parameters_;
  std::vector<std::int32_t> ids_;
  std::vector<float> weights_;
  std::vector<MicroBatch> micro_batches_;
  std::vector<pipeline::TraceSpan> trace_;
  std::int64_t updates_ = 0;
};

}  // namespace teratron
