// One rank's part of a model and all the memory it takes, planned from plain values: any rank of any layout, without
// starting it. Executors run by the same plan.
#pragma once

#include <optional>

#include "executor/packed_weights.h"
#include "executor/parameter_buckets.h"
#include "executor/stage/stage_memory.h"
#include "ops/working_memory.h"

namespace teratron {

class StagePlan {
 public:
  // Gives the model's parameters their stages. The model must be this tensor-parallel rank's, and outlive the plan.
  // `options`: logits_chunk is not 0, kept_layers is there, and the caller has checked the schedule; one without
  // actions is filled in (ExecutorOptions::schedule). UserError: a model that sees later tokens, asked to run slices of
  // tokens.
  StagePlan(Model& model, const ExecutorOptions& options, const RankCoordinates& coordinates, DType compute_dtype);
  StagePlan(const StagePlan&) = delete;
  StagePlan& operator=(const StagePlan&) = delete;

  const ExecutorOptions& options() const { return options_; }
  const RankCoordinates& coordinates() const { return coordinates_; }
  const StageCells& cells() const { return cells_; }
  const StageMemory& memory() const { return memory_; }
  const ParameterBuckets& buckets() const { return buckets_; }
  const PackedWeights& packed_weights() const { return packed_weights_; }
  // Shapes that the stage computes. A back end's working memory, which is not in memory(), follows from them.
  const WorkShapes& work() const { return work_; }
  // The memory of an update, alive after the last backward pass alone.
  Carver update_workspace() const {
    return update_workspace_ ? Carver(memory_.arena()[*update_workspace_].data) : Carver();
  }

  // Buckets of this stage whose gradients are complete at this point of the backward pass: usually one, none in other
  // stages.
  std::span<const std::size_t> buckets_at(ParameterBucket::Part part, std::int64_t layer = 0) const;

  // Memory of StepTallies, u8; null where ExecutorOptions does not ask for them.
  TensorRef tallies() const { return tallies_ ? memory_.arena()[*tallies_] : TensorRef(); }

  void allocate(Allocator& allocator);  // and gives the parameters their views

  bool is_here(const Parameter& parameter) const;

 private:
  struct PartBuckets {
    ParameterBucket::Part part;
    std::int64_t layer;
    std::vector<std::size_t> buckets;
  };
  void plan_parameters(Model& model, DType compute_dtype);
  void plan_products(const ParameterBucket& bucket);
  void plan_packed(const ParameterBucket& bucket, const ModelTraits& traits);
  Span life_of_packed(int place, WeightProduct use) const;
  std::int64_t products_of_step(std::int64_t rows) const;  // with a weight, of so many rows of a call at most
  void plan_optimizer(Model& model, DType compute_dtype);
  void add_product(const WorkShapes::Product& product);
  void plan_attention(const Model& model);
  bool holds(const ParameterBucket& bucket) const;
  int stage_of(const ParameterBucket& bucket) const;
  int chunk_of(std::int64_t layer) const;  // InternalError: the layer is another stage's
  int first_gradient_moment(const ParameterBucket& bucket) const;
  // Whether the output projection of a tied table, or a part of it, is this stage's.
  bool multiplies_table() const { return cells_.has_head() || memory_.has_joint_ends(); }

  const ExecutorOptions options_;
  const RankCoordinates coordinates_;
  const StageCells cells_;
  StageMemory memory_;
  ParameterBuckets buckets_;
  PackedWeights packed_weights_;
  WorkShapes work_;
  std::vector<PartBuckets> parts_;
  std::optional<Arena::Block> update_workspace_, tallies_;
  std::vector<const Parameter*> tied_;  // of those that both ends hold
};

}  // namespace teratron
