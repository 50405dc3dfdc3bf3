// Parameters whose gradients are finished at the same moment of the backward pass, laid side by side: one view of a
// bucket's gradients is what data-parallel ranks sum while the rest of the backward pass still runs.
#pragma once

#include <string>
#include <vector>

#include "nn/parameter.h"

namespace teratron {

class ParameterBuckets {
 public:
  // `gradient_first`..`gradient_last`: the moments (tensor/memory.h) in which the bucket's gradients live.
  void add(std::string name, std::vector<Parameter*> members, int gradient_first, int gradient_last);

  void plan(Arena& arena, DType dtype, bool training);
  void place(const Arena& arena);  // gives every parameter its views

  std::size_t size() const { return buckets_.size(); }
  TensorRef gradient(std::size_t bucket) const { return buckets_[bucket].gradient_view; }  // flat

 private:
  struct Bucket {
    std::string name;
    std::vector<Parameter*> members;
    std::vector<std::int64_t> offsets;  // of the members, in elements
    std::int64_t elements = 0;
    int gradient_first = 0, gradient_last = 0;
    Arena::Block value = 0, gradient = 0, moment1 = 0, moment2 = 0;
    TensorRef gradient_view;
  };
  bool training_ = false;
  std::vector<Bucket> buckets_;
};

}  // namespace teratron
