// What the passes of one training step take: a step as training runs it, of micro-batches of random tokens, cut into
// slices in one way, with all ranks of the layout at work and the trace of the executor as the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/executor.h"
#include "model/make_model.h"
#include "profile/profile_request.h"

namespace teratron {

struct StepTimes {
  struct Pass {
    double forward = 0, backward = 0;  // a backward in two parts: what both take
    double backward_weight = 0;        // of two parts, that
  };
  // In milliseconds, the same on every rank.
  std::vector<std::vector<Pass>> passes;  // [stage][micro-batch * slices + slice]: the mean of the stage's ranks
  double pipeline = 0;                    // until the last stage is done with its last pass
  double iteration = 0;                   // with sums of gradients and the update
};

class StepClock {
 public:
  // Of a schedule whose micro-batches are cut into slices of these tokens. Takes the memory of a runner. Every rank of
  // the mesh makes one and calls its members together.
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
