// Parameter: a trainable tensor, declared once. Allocation, initialisation, decay groups, splitting over ranks,
// checkpoints, conversion and counting all walk the same declarations, in order.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rank_coordinates.h"
#include "ops/operations.h"
#include "tensor/memory.h"

namespace teratron {

enum class Init { kZero, kOne, kNormal, kUniform };

// Split of a parameter over the ranks of a tensor-parallel group: `axis` is cut into `blocks` equal blocks (3 for
// packed queries, keys and values) and each block into an equal part a rank, so that heads stay whole (Megatron-LM
// section 3). kNoAxis: every rank holds all of it.
struct Split {
  static constexpr int kNoAxis = -1;
  int axis = kNoAxis;
  std::int64_t blocks = 1;
};

// Sums over tensor-parallel ranks that a rank's gradient of a parameter still needs.
enum class GradientSum {
  kNone,
  kOverRows,   // under sequence parallelism: each rank's gradient is that of its own rows
  kOverRanks,  // always: each rank's gradient is that of its own heads or columns
};

// Sharding: the elements of a parameter (of this rank's part of it, flat) that each data-parallel rank updates. With a
// sharded optimizer the elements of a bucket of parameters are cut into equal runs, a rank each; else every rank
// updates all.
struct Sharding {
  std::int64_t first = 0;  // where the parameter begins in its bucket
  std::int64_t run = std::numeric_limits<std::int32_t>::max() * std::int64_t{1 << 16};  // elements of a rank's run
  int ranks = 1, rank = 0;
};

// A tensor that the optimizer keeps of a parameter from update to update: an element for each that this rank updates,
// zeros at first. Optimizer::slots names them; checkpoints store them whole, as "<parameter>.<slot>".
struct OptimizerSlot {
  std::string name;
  DType dtype = DType::kF32;  // floating, no wider than the accumulation type
  TensorRef values = {};      // flat; null until placed
};

// Flat views over the elements that this rank updates.
struct OptimizerState {
  // Masters: null where the optimizer updates Parameter::value. If that is fp16, the weights that it was rounded from
  // (of the accumulation type); if bf16, their remainders alone (u16, split_float).
  TensorRef master;
  std::vector<OptimizerSlot> slots;  // in training, of parameters of other stages too, then without memory

  TensorRef slot(std::string_view name) const;  // InternalError: there is none of this name
};

// The type of `master` in training with this compute type; nothing: there is none.
std::optional<DType> master_dtype_of(DType compute);

struct Parameter {
  std::string name;  // global and free of layout: "layers.3.attention.qkv.weight"
  Shape shape;       // as stored here: [outputs, inputs] for linear layers; a rank's part where it is split
  Init init = Init::kZero;
  double init_scale = 1.0;        // times init_method_std; 1/sqrt(2N) just before a residual add (Megatron section 4).
                                  // kUniform: the largest magnitude
  std::int64_t padding_rows = 0;  // the last rows of the global axis 0 that only round it up: zero, never stored
  bool layer_matrix = false;      // a weight matrix of a transformer layer; along axis 0 split.blocks of them
  bool takes_tiles = false;   // a matrix of products or the token table: may be held in tiles, in training where frozen
  bool decay = false;         // weight decay: matrices and embeddings, never biases and norms
  bool adapter = false;       // belongs to an adapter (nn/adapter.h)
  bool frozen = false;        // is not trained: has neither gradient nor master nor slots
  bool widens_tiles = false;  // where tiles hold it, products take their values, and do not round their rows
  Split split;
  // In the tensor-parallel group. A parameter that is not split counts once, on the first rank. Where `replicas` ranks
  // one after another hold the same part (key and value heads that are fewer than the ranks), the group is that of the
  // parts; a rank is number `replica` of those with its part, the gradient is the sum over them, and the first counts.
  GroupRank group;
  int replicas = 1, replica = 0;
  // Split over stages, too: its group is all ranks of a copy of the model (Mesh::model).
  bool over_stages = false;
  // Pipeline stage on which it counts and is saved; over stages, this rank's. A tied parameter also lies on the last
  // stage.
  int stage = 0;

  GradientSum sum = GradientSum::kNone;

  // Views into arenas, null until placed. `value` is of the compute type, what the layers read, or tiles of it
  // (tensor/weight_tiles.h); `gradient` of the accumulation type.
  TensorRef value, gradient;
  // u8, by WeightProduct: `value` packed for products; null unless a step has packed it.
  std::array<TensorRef, 2> packed;
  OptimizerState state;
  Sharding sharding;
  std::uint32_t number = 0;  // among all of the model, in the order of declaration: names streams of random numbers

  TensorRef& packed_for(WeightProduct use) { return packed[static_cast<std::size_t>(use)]; }
  const TensorRef& packed_for(WeightProduct use) const { return packed[static_cast<std::size_t>(use)]; }
  bool is_split() const { return split.axis != Split::kNoAxis; }
  // The ranks of the tensor-parallel group, replicas included.
  GroupRank tensor_rank() const { return {group.rank * replicas + replica, group.size * replicas}; }
  // True: this rank's part counts in sums over ranks and is saved.
  bool counts() const { return replica == 0 && (is_split() || group.rank == 0); }
  Shape global_shape() const {
    Shape global = shape;
    if (is_split()) global[split.axis] *= group.size;
    return global;
  }
};

using ParameterVisitor = std::function<void(Parameter&)>;

// A run of consecutive rows of a rank's part that are consecutive in the whole parameter too; a parameter of one axis
// is a column of rows. Rows count through all blocks; columns are those of the whole parameter that the rank holds.
struct ParameterPiece {
  std::int64_t local_row, global_row, rows;
  std::int64_t global_column, columns;
};

struct ElementRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

// The elements that data-parallel rank `rank` updates.
ElementRange shard_of(const Parameter& parameter, int rank);
inline ElementRange own_shard(const Parameter& parameter) { return shard_of(parameter, parameter.sharding.rank); }
// Elements of own_shard() in a view of the whole part, flat.
TensorRef slice_of(TensorRef whole, ElementRange range);

// Indices of the elements of own_shard() in the whole parameter.
ElementIndices indices_of(const Parameter& parameter);

// The pieces that rank `rank` of the parameter's group holds, in order, padding rows left out. At most `blocks` many.
std::vector<ParameterPiece> pieces_of(const Parameter& parameter, int rank);

}  // namespace teratron
