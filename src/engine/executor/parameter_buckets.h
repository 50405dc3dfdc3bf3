// Parameters whose gradients are finished at the same moment of the backward pass, laid side by side: one view of a
// bucket's gradients is what data-parallel ranks sum while the rest of the backward pass still runs. With a sharded
// optimizer (ZeRO, arXiv 1910.02054, stage 1; Megatron's distributed optimizer) each rank receives the sum of its run
// of the bucket alone, updates that, and all gather the bucket's new weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "nn/parameter.h"
#include "ops/backend.h"

namespace teratron {

class ParameterBuckets {
 public:
  // `gradient_first`..`gradient_last`: the moments (tensor/memory.h) in which the bucket's gradients live.
  void add(std::string name, std::vector<Parameter*> members, int gradient_first, int gradient_last);

  // `sharded_over`: the data-parallel ranks that the optimizer's state is shared out over; one: each keeps all of it.
  // In training, members have their optimizer's slots by now; they get their Sharding.
  // `tiles` hold the parameters that take them, in training the frozen ones of those. UserError: the columns of one are
  // no multiple of a tile's.
  void plan(Arena& arena, DType compute_dtype, bool training, GroupRank sharded_over,
            std::optional<DType> tiles = std::nullopt);
  void bind(const Arena& arena);  // gives every parameter its views

  std::size_t size() const { return buckets_.size(); }
  TensorRef gradients(std::size_t bucket) const { return buckets_[bucket].gradients; }  // flat

  // The sum over the group of the bucket's gradients: all of it, or each rank's run.
  Pending start_gradient_sum(std::size_t bucket, Communicator& data) const;
  // Adds up, before that, the gradients that a rank of the tensor-parallel group has a share of: those of heads; under
  // sequence parallelism those that cover its rows only; and those of parts that the ranks of `replicas` hold alike
  // (null: there are none).
  void sum_over_ranks(std::size_t bucket, Communicator& tensor, Communicator* replicas, bool sequence_parallel) const;
  // Gathers all ranks' runs of the weights after an update, if they are sharded.
  void gather_weights(Communicator& data) const;

 private:
  // One slot of all members that have it, side by side.
  struct SlotBlock {
    OptimizerSlot slot;
    Arena::Block block = 0;
    std::vector<std::int64_t> begins;  // of the members' own elements in the block; of those without the slot, too
  };
  struct Bucket {
    std::string name;
    // Members that sum over rows come first, then over ranks, then over replicas; frozen ones last.
    std::vector<Parameter*> members;
    std::vector<std::int64_t> offsets;       // of those that are not frozen, in elements
    std::vector<std::int64_t> byte_offsets;  // of the values of all
    std::int64_t elements = 0, rows_end = 0, ranks_end = 0, replicas_end = 0;  // of those that are not frozen
    int gradient_first = 0, gradient_last = 0;
    Arena::Block value = 0, gradient = 0, master = 0;
    std::vector<SlotBlock> slots;
    TensorRef values, gradients;  // flat: of values the trained ones
  };
  // The elements of a data-parallel rank's run that lie between the start of a member and that of the next.
  std::int64_t elements_in_run(const Bucket& bucket, std::size_t member, int rank) const;
  void plan_slots(Arena& arena, Bucket& bucket) const;
  bool is_in_tiles(const Parameter& member) const {
    return tiles_ && member.takes_tiles && (!training_ || member.frozen);
  }
  // The view of a member's value at this byte of the bucket's.
  TensorRef value_view(const Parameter& member, void* at) const;
  std::int64_t plan_bytes(Bucket& bucket) const;
  void require_whole_tiles(const Parameter& member) const;
  TensorRef own_run(TensorRef flat) const;

  bool training_ = false, has_master_ = false;
  DType compute_dtype_ = DType::kF32;
  std::optional<DType> tiles_;
  Sharding sharding_;
  std::vector<Bucket> buckets_;
};

}  // namespace teratron
