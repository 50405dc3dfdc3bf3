#include "executor/parameter_buckets.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/round_up.h"
#include "tensor/weight_tiles.h"

namespace teratron {
namespace {

constexpr std::int64_t kMemberAlignment = 16;  // elements between the starts of members: a cache line of fp32
constexpr std::int64_t kMemberBytes = 64;

// Order of a bucket's members: those whose gradients ranks add up in the same way stand together.
int sum_order(const Parameter& member) {
  if (member.frozen) return 4;
  if (member.sum == GradientSum::kOverRows) return 0;
  if (member.sum == GradientSum::kOverRanks) return 1;
  return member.replicas > 1 ? 2 : 3;
}

bool are_alike(const OptimizerSlot& a, const OptimizerSlot& b) { return a.name == b.name && a.dtype == b.dtype; }

// The member's slot of this name and type; null: it has none.
OptimizerSlot* find_slot(Parameter& member, const OptimizerSlot& like) {
  const auto found =
      std::ranges::find_if(member.state.slots, [&](const OptimizerSlot& slot) { return are_alike(slot, like); });
  return found == member.state.slots.end() ? nullptr : &*found;
}

}  // namespace

void ParameterBuckets::add(std::string name, std::vector<Parameter*> members, int gradient_first, int gradient_last) {
  Bucket bucket{.name = std::move(name),
                .members = std::move(members),
                .gradient_first = gradient_first,
                .gradient_last = gradient_last};
  std::ranges::stable_sort(bucket.members, {}, [](const Parameter* member) { return sum_order(*member); });
  for (const Parameter* member : bucket.members) {
    if (member->frozen) break;
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += round_up(member->shape.elements(), kMemberAlignment);
    const int order = sum_order(*member);
    if (order == 0) bucket.rows_end = bucket.elements;
    if (order <= 1) bucket.ranks_end = bucket.elements;
    if (order <= 2) bucket.replicas_end = bucket.elements;
  }
  buckets_.push_back(std::move(bucket));
}

std::int64_t ParameterBuckets::elements_in_run(const Bucket& bucket, std::size_t member, int rank) const {
  const std::int64_t run = bucket.elements / sharding_.ranks;
  const std::int64_t next = member + 1 < bucket.offsets.size() ? bucket.offsets[member + 1] : bucket.elements;
  return std::max<std::int64_t>(
      0, std::min(next, (rank + 1) * run) - std::max<std::int64_t>(bucket.offsets[member], rank * run));
}

// Members may have different slots, and then runs have different shares of them: every rank takes the memory of the
// largest share, so that all ranks take the same.
void ParameterBuckets::plan_slots(Arena& arena, Bucket& bucket) const {
  for (const Parameter* member : bucket.members) {
    for (const OptimizerSlot& slot : member->state.slots) {
      const bool is_known =
          std::ranges::any_of(bucket.slots, [&](const SlotBlock& block) { return are_alike(block.slot, slot); });
      if (!is_known) bucket.slots.push_back({.slot = slot});
    }
  }
  for (SlotBlock& block : bucket.slots) {
    std::int64_t most = 0;
    for (int rank = 0; rank < sharding_.ranks; ++rank) {
      std::int64_t elements = 0;
      for (std::size_t i = 0; i < bucket.offsets.size(); ++i) {
        if (rank == sharding_.rank) block.begins.push_back(elements);
        if (find_slot(*bucket.members[i], block.slot) != nullptr) elements += elements_in_run(bucket, i, rank);
      }
      most = std::max(most, elements);
    }
    block.block = arena.add(bucket.name + "." + block.slot.name, MemoryKind::kOptimizer, block.slot.dtype, {most}, 0,
                            Arena::kForever);
  }
}

TensorRef ParameterBuckets::value_view(const Parameter& member, void* at) const {
  if (!is_in_tiles(member)) return {at, compute_dtype_, member.shape};
  return {at, *tiles_, tiles_of(member.shape)};
}

void ParameterBuckets::require_whole_tiles(const Parameter& member) const {
  if (!is_in_tiles(member) || member.shape[1] % kTileColumns == 0) return;
  const bool is_part = member.split.axis == 1 && member.group.size > 1;
  throw_user_error("'{}' has {} columns{}, and weights in {} come in blocks of {}; leave out {}{}", member.name,
                   member.shape[1], is_part ? " on each tensor-parallel rank" : "", name_of(*tiles_), kTileColumns,
                   training_ ? "--frozen-weights" : "--weights", is_part ? " or take fewer ranks with --tp" : "");
}

// Places members of several types side by side: first those that are trained, whose elements ranks may share out.
// Returns the bytes of all.
std::int64_t ParameterBuckets::plan_bytes(Bucket& bucket) const {
  const std::int64_t element = size_of(compute_dtype_);
  const bool has_runs = training_ || !tiles_;
  std::int64_t bytes = has_runs ? round_up(bucket.elements * element, kMemberBytes) : 0;
  for (std::size_t i = 0; i < bucket.members.size(); ++i) {
    Parameter& member = *bucket.members[i];
    require_whole_tiles(member);
    member.widens_tiles = training_ && is_in_tiles(member);
    if (has_runs && !member.frozen) {
      bucket.byte_offsets.push_back(bucket.offsets[i] * element);
      continue;
    }
    bucket.byte_offsets.push_back(bytes);
    bytes += round_up(value_view(member, nullptr).bytes(), kMemberBytes);
  }
  return bytes;
}

void ParameterBuckets::plan(Arena& arena, DType compute_dtype, bool training, GroupRank sharded_over,
                            std::optional<DType> tiles) {
  const DType accumulation = accumulation_dtype_of(compute_dtype);
  training_ = training;
  compute_dtype_ = compute_dtype;
  tiles_ = tiles;
  const std::optional<DType> master = master_dtype_of(compute_dtype);
  has_master_ = training && master;
  sharding_ = {.ranks = sharded_over.size, .rank = sharded_over.rank};
  for (Bucket& bucket : buckets_) {
    bucket.elements = round_up(bucket.elements, kMemberAlignment * sharding_.ranks);
    const auto forever = [&](MemoryKind kind, const char* what, DType dtype, std::int64_t elements) {
      return arena.add(bucket.name + what, kind, dtype, {elements}, 0, Arena::kForever);
    };
    bucket.value = forever(MemoryKind::kWeights, "", DType::kU8, plan_bytes(bucket));
    if (!training) continue;
    bucket.gradient = arena.add(bucket.name + ".gradient", MemoryKind::kGradients, accumulation, {bucket.elements},
                                bucket.gradient_first, bucket.gradient_last);
    const std::int64_t run = bucket.elements / sharding_.ranks;
    if (master) bucket.master = forever(MemoryKind::kOptimizer, ".master", *master, run);
    for (std::size_t i = 0; i < bucket.offsets.size(); ++i) {
      bucket.members[i]->sharding = {
          .first = bucket.offsets[i], .run = run, .ranks = sharding_.ranks, .rank = sharding_.rank};
    }
    plan_slots(arena, bucket);
  }
}

void ParameterBuckets::bind(const Arena& arena) {
  for (Bucket& bucket : buckets_) {
    std::byte* const bytes = static_cast<std::byte*>(arena[bucket.value].data);
    bucket.values = {bytes, compute_dtype_, {bucket.elements}};
    if (training_) bucket.gradients = arena[bucket.gradient];
    const std::int64_t run = bucket.elements / sharding_.ranks, run_begin = run * sharding_.rank;
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      Parameter& member = *bucket.members[i];
      member.value = value_view(member, bytes + bucket.byte_offsets[i]);
      if (!training_ || member.frozen) continue;
      const std::int64_t begin = bucket.offsets[i], end = begin + member.shape.elements();
      member.gradient = bucket.gradients.slice(0, begin, end).reshape(member.shape);
      const std::int64_t own = own_shard(member).count();
      const auto part = [&](Arena::Block block, std::int64_t first) {
        return own == 0 ? arena[block].slice(0, 0, 0) : arena[block].slice(0, first, first + own);
      };
      if (has_master_) member.state.master = part(bucket.master, std::max(begin, run_begin) - run_begin);
      for (const SlotBlock& block : bucket.slots) {
        OptimizerSlot* const slot = find_slot(member, block.slot);
        if (slot != nullptr) slot->values = part(block.block, block.begins[i]);
      }
    }
  }
}

TensorRef ParameterBuckets::own_run(TensorRef flat) const {
  const std::int64_t run = flat.elements() / sharding_.ranks;
  return flat.slice(0, run * sharding_.rank, run * (sharding_.rank + 1));
}

Pending ParameterBuckets::start_gradient_sum(std::size_t bucket, Communicator& data) const {
  const TensorRef& gradients = buckets_[bucket].gradients;
  if (gradients.elements() == 0) return {};  // all of it is frozen
  if (sharding_.ranks == 1) return data.start_all_reduce(gradients);
  return data.start_reduce_scatter(own_run(gradients), gradients);
}

void ParameterBuckets::sum_over_ranks(std::size_t bucket, Communicator& tensor, Communicator* replicas,
                                      bool sequence_parallel) const {
  const Bucket& b = buckets_[bucket];
  const std::int64_t begin = sequence_parallel ? 0 : b.rows_end;
  if (begin < b.ranks_end) tensor.all_reduce(b.gradients.slice(0, begin, b.ranks_end));
  if (replicas != nullptr && b.ranks_end < b.replicas_end) {
    replicas->all_reduce(b.gradients.slice(0, b.ranks_end, b.replicas_end));
  }
}

void ParameterBuckets::gather_weights(Communicator& data) const {
  if (sharding_.ranks == 1) return;
  for (const Bucket& bucket : buckets_) {
    if (bucket.elements > 0) data.all_gather(bucket.values, own_run(bucket.values));
  }
}

}  // namespace teratron
