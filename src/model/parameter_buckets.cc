#include "model/parameter_buckets.h"

namespace teratron {
namespace {

constexpr std::int64_t kAlignment = 16;  // elements between the starts of members: a cache line of fp32

}  // namespace

void ParameterBuckets::add(std::string name, std::vector<Parameter*> members, int gradient_first, int gradient_last) {
  Bucket bucket{.name = std::move(name),
                .members = std::move(members),
                .gradient_first = gradient_first,
                .gradient_last = gradient_last};
  for (const Parameter* member : bucket.members) {
    bucket.offsets.push_back(bucket.elements);
    bucket.elements += (member->shape.elements() + kAlignment - 1) / kAlignment * kAlignment;
  }
  buckets_.push_back(std::move(bucket));
}

void ParameterBuckets::plan(Arena& arena, DType dtype, bool training) {
  training_ = training;
  for (Bucket& bucket : buckets_) {
    const Shape shape{bucket.elements};
    const auto forever = [&](MemoryKind kind, const char* what) {
      return arena.add(bucket.name + what, kind, dtype, shape, 0, Arena::kForever);
    };
    bucket.value = forever(MemoryKind::kWeights, "");
    if (!training) continue;
    bucket.gradient = arena.add(bucket.name + ".gradient", MemoryKind::kGradients, dtype, shape, bucket.gradient_first,
                                bucket.gradient_last);
    bucket.moment1 = forever(MemoryKind::kOptimizer, ".moment1");
    bucket.moment2 = forever(MemoryKind::kOptimizer, ".moment2");
  }
}

void ParameterBuckets::place(const Arena& arena) {
  for (Bucket& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.members.size(); ++i) {
      Parameter& member = *bucket.members[i];
      const std::int64_t begin = bucket.offsets[i], end = begin + member.shape.elements();
      const auto part = [&](Arena::Block block) { return arena[block].slice(0, begin, end).reshape(member.shape); };
      member.value = part(bucket.value);
      if (!training_) continue;
      member.gradient = part(bucket.gradient);
      member.moment1 = part(bucket.moment1);
      member.moment2 = part(bucket.moment2);
    }
    if (training_) bucket.gradient_view = arena[bucket.gradient];
  }
}

}  // namespace teratron
