// Memory of a layout: a bound that costs microseconds, and the plan by the code that allocates it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "plan/costs/rank_parameters.h"
#include "plan/search/layout.h"
#include "train/plans/memory_plan.h"

namespace teratron::plan {

// Bytes that parameters keep on each rank that holds them. The optimizer's (masters and slots) are those of all copies
// together where they share them out.
struct ParameterBytes {
  std::int64_t weight = 0, gradient = 0, optimizer = 0;
  std::int64_t all() const { return weight + gradient + optimizer; }
  // `tiles`: of frozen weights that take them.
  void add(const Parameter& parameter, const Optimizer& optimizer, DType compute_dtype, std::optional<DType> tiles);
};

// Bytes of a rank of each stage, as training allocates them (planned_memory()). Where copies share out weights and
// gradients, a rank has its share and two whole layers.
std::vector<std::int64_t> memory_of_stages(const TrainConfig& config, const MemoryPlanContext& context);

// Bytes of weights and gradients that a rank of the stage leaves to other copies: 0 unless they share these out.
struct LeftOut {
  std::int64_t weights = 0, gradients = 0;
  std::int64_t all() const { return weights + gradients; }
};
LeftOut bytes_left_out(const TrainConfig& config, const MemoryPlanContext& context, std::size_t stage);

// Memory of a rank of one stage by kind; in all, that of memory_of_stages().
RankMemory memory_of_stage(const TrainConfig& config, const MemoryPlanContext& context, int stage);

// Inputs of the plan of a run on that cluster. A device without a number of cores is a GPU. Graphs are not
// counted: a pass for which there is no memory left is launched kernel by kernel.
MemoryPlanContext memory_context(const TrainConfig& config, std::int64_t vocab_size, const Cluster& cluster);

// Memory of a layout's fullest stage, as far as it is planned (LayoutMemory::plan_on()).
struct FullestEnd {
  std::int64_t bytes = 0;  // the most of the stages that are planned
  std::size_t stages = 0;  // that are planned
  bool is_whole = false;   // no other stage takes more
};

class LayoutMemory {
 public:
  // Refers to `config`, which gives all but the layout; its batch may change later. Not for two threads at once.
  LayoutMemory(const TrainConfig& config, const MemoryPlanContext& context);

  // A lower bound of the fullest stage: the first one when most micro-batches are alive there, without the parts that
  // have no closed form. Slices may still be open, and layers to be dealt.
  std::int64_t least(const Layout& layout) const;

  // Bytes of a rank of each stage, by train/plans/memory_plan.h.
  std::vector<std::int64_t> planned(const Layout& layout) const;
  // The most of a rank of the first and of the last stage: with as many layers in each, no other takes more, since
  // fewer micro-batches are alive on later ones. Where that is not so, of all stages.
  std::int64_t fullest_end(const Layout& layout) const;
  // Continues the plan in `known` stage by stage, the ends first, until a stage takes more than `enough` bytes or so
  // many stages are planned.
  void plan_on(const Layout& layout, std::int64_t enough, std::size_t stages, FullestEnd& known) const;

 private:
  // Bytes of the largest slice.
  struct SliceBytes {
    std::int64_t x = 0, kept = 0;  // of a layer: its input, and what else its backward reads
    std::int64_t cache = 0;        // of a layer and a micro-batch in slices: packed projections of whole sequences
    std::int64_t again = 0, wide = 0, full = 0, stream = 0;  // workspaces
  };
  // A layer of so many tensor-parallel ranks, and the bytes of its parameters.
  struct Shard {
    TransformerLayer layer;
    ParameterBytes of_layer;
  };
  void add(ParameterBytes& bytes, Parameter parameter) const;
  const Shard& shard_of(std::int64_t tensor) const;
  const RankParameters& ends_of(const Layout& layout) const;
  std::vector<int> stages_that_may_be_fullest(const Layout& layout) const;
  SliceBytes slice_bytes(const Layout& layout, std::int64_t slices) const;
  std::int64_t state(const Layout& layout, const ParameterBytes& bytes) const;

  const TrainConfig& config_;
  const MemoryPlanContext context_;
  const ModelConfig model_;
  const std::shared_ptr<const Optimizer> optimizer_;
  mutable std::map<std::int64_t, Shard> shards_;  // by tensor-parallel ranks: made once, asked for by every layout
  mutable std::map<std::pair<std::int64_t, std::int64_t>, RankParameters> ends_;  // and by ranks of the vocabulary
};

}  // namespace teratron::plan
