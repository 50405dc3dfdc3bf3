#include "executor/parameter_buckets.h"

#include <algorithm>

#include "base/round_up.h"

namespace teratron {
namespace {

constexpr std::int64_t kMemberAlignment = 16;  // elements between the starts of members: a cache line of fp32

}  // namespace

void ParameterBuckets::add(std::string name, std::vector<Parameter*> members, int gradient_first, int gradient_last) {
  Bucket bucket{.name = std::move(name),
                .members = std::move(members),
                .gradient_first = gradient_first,
                .gradient_last = gradient_last};
  std::ranges::stable_partition(bucket.members, [](const Parameter* member) { return member->sums_over_rows; });
  for (const Parameter* member : bucket.members) {
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += round_up(member->shape.elements(), kMemberAlignment);
    if (member->sums_over_rows) bucket.elements_over_rows = bucket.elements;
  }
  buckets_.push_back(std::move(bucket));
}

void ParameterBuckets::plan(Arena& arena, DType compute_dtype, bool training, bool bf16_moments,
                            GroupRank sharded_over) {
  const DType accumulation = accumulation_dtype_of(compute_dtype), moments = bf16_moments ? DType::kBF16 : accumulation;
  training_ = training;
  const std::optional<DType> master = master_dtype_of(compute_dtype);
  has_master_ = training && master;
  sharding_ = {.ranks = sharded_over.size, .rank = sharded_over.rank};
  for (Bucket& bucket : buckets_) {
    bucket.elements = round_up(bucket.elements, kMemberAlignment * sharding_.ranks);
    const auto forever = [&](MemoryKind kind, const char* what, DType dtype, std::int64_t elements) {
      return arena.add(bucket.name + what, kind, dtype, {elements}, 0, Arena::kForever);
    };
    bucket.value = forever(MemoryKind::kWeights, "", compute_dtype, bucket.elements);
    if (!training) continue;
    bucket.gradient = arena.add(bucket.name + ".gradient", MemoryKind::kGradients, accumulation, {bucket.elements},
                                bucket.gradient_first, bucket.gradient_last);
    const std::int64_t run = bucket.elements / sharding_.ranks;
    if (master) bucket.master = forever(MemoryKind::kOptimizer, ".master", *master, run);
    bucket.moment1 = forever(MemoryKind::kOptimizer, ".moment1", moments, run);
    bucket.moment2 = forever(MemoryKind::kOptimizer, ".moment2", moments, run);
  }
}

void ParameterBuckets::bind(const Arena& arena) {
  for (Bucket& bucket : buckets_) {
    bucket.values = arena[bucket.value];
    if (training_) bucket.gradients = arena[bucket.gradient];
    const std::int64_t run = bucket.elements / sharding_.ranks, run_begin = run * sharding_.rank;
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      Parameter& member = *bucket.members[i];
      const std::int64_t begin = bucket.offsets[i], end = begin + member.shape.elements();
      member.value = bucket.values.slice(0, begin, end).reshape(member.shape);
      if (!training_) continue;
      member.gradient = bucket.gradients.slice(0, begin, end).reshape(member.shape);
      member.sharding = {.first = begin, .run = run, .ranks = sharding_.ranks, .rank = sharding_.rank};
      const ElementRange own = own_shard(member);
      const std::int64_t state_begin = std::max(begin, run_begin) - run_begin;
      const auto part = [&](Arena::Block block) {
        return own.count() == 0 ? arena[block].slice(0, 0, 0)
                                : arena[block].slice(0, state_begin, state_begin + own.count());
      };
      member.state = {.master = has_master_ ? part(bucket.master) : TensorRef(),
                      .moment1 = part(bucket.moment1),
                      .moment2 = part(bucket.moment2)};
    }
  }
}

TensorRef ParameterBuckets::own_run(TensorRef flat) const {
  const std::int64_t run = flat.elements() / sharding_.ranks;
  return flat.slice(0, run * sharding_.rank, run * (sharding_.rank + 1));
}

Pending ParameterBuckets::start_gradient_sum(std::size_t bucket, Communicator& data) const {
  const TensorRef& gradients = buckets_[bucket].gradients;
  if (sharding_.ranks == 1) return data.start_all_reduce(gradients);
  return data.start_reduce_scatter(own_run(gradients), gradients);
}

void ParameterBuckets::sum_over_rows(std::size_t bucket, Communicator& tensor) const {
  const Bucket& b = buckets_[bucket];
  if (b.elements_over_rows > 0) tensor.all_reduce(b.gradients.slice(0, 0, b.elements_over_rows));
}

void ParameterBuckets::gather_weights(Communicator& data) const {
  if (sharding_.ranks == 1) return;
  for (const Bucket& bucket : buckets_) data.all_gather(bucket.values, own_run(bucket.values));
}

}  // namespace teratron
