// Layout settings: the ranks of a command and the distribution of the work over them.
#pragma once

#include <cstdint>
#include <string>

#include "base/faults.h"
#include "comm/rank_coordinates.h"
#include "executor/recomputation.h"
#include "options/fields.h"

namespace teratron {

constexpr std::int64_t kMostRanks = 1 << 16;

// Layout of any command that runs a model. The product of the three sizes is the number of ranks.
struct LayoutSettings {
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1;
  std::int64_t threads = 0;  // all ranks of a process together; 0: one per core
  std::string bind;          // address at which the first of several processes listens; empty: chosen

  MeshShape mesh() const {
    return {.tensor = static_cast<int>(tensor_parallel),
            .pipeline = static_cast<int>(pipeline_parallel),
            .data = static_cast<int>(data_parallel)};
  }
  Faults faults() const;
};

// Tensors that the copies of the model share out among themselves (ZeRO, arXiv 1910.02054): the optimizer's state;
// gradients too, which are then summed after each micro-batch; weights too, which are then gathered layer by layer for
// each pass.
enum class DataSharding { kNone, kOptimizer, kGradients, kWeights };

// Activations that a layer could make again cheaply, as --keep-activations says.
enum class KeepActivations { kAuto, kAll, kNone };

// Weights that an update keeps packed for its products on a CPU, as --packed-weights says.
enum class PackWeights { kAuto, kAll, kNone };

// Layout of training, which also distributes activations and the optimizer's state.
struct TrainingLayoutSettings : LayoutSettings {
  bool sequence_parallel = false, distributed_optimizer = false;
  std::string recompute = name_of(Recompute::kNone);  // a kind, or a list of every stage's (parse_recompute())
  DataSharding data_sharding = DataSharding::kNone;   // the last two kinds: plans and simulations alone have them
  KeepActivations keep_activations = KeepActivations::kAuto;
  PackWeights packed_weights = PackWeights::kAuto;

  // That of `recompute`; none where that has a fault.
  Recomputation recomputation() const;
  bool shards_gradients() const { return data_sharding >= DataSharding::kGradients && data_parallel > 1; }
  // Faults of a layout that plans know and no executor of this program runs.
  Faults execution_faults() const;
};

// Adds the sizes of one copy of the model: tensor-parallel ranks and stages.
void add_model_parallel_fields(FieldList& list, LayoutSettings& settings);
void add_data_parallel_field(FieldList& list, LayoutSettings& settings, std::string help);
void add_process_fields(FieldList& list, LayoutSettings& settings);  // --threads and --bind
// Adds --data-parallel-sharding.
void add_data_sharding_field(FieldList& list, TrainingLayoutSettings& settings);
Field& add_recompute_field(FieldList& list, TrainingLayoutSettings& settings);
// Adds all other fields under their own heading.
void add_training_layout_fields(FieldList& list, TrainingLayoutSettings& settings);

}  // namespace teratron
