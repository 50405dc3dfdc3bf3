#include "plan/costs/rank_parameters.h"

#include "model/make_model.h"

namespace teratron::plan {

RankParameters rank_parameters(const ModelConfig& model, std::int64_t tensor, std::int64_t stages, bool trained) {
  ModelConfig one_layer = model;
  one_layer.num_layers = 1;
  RankParameters sums;
  const std::unique_ptr<Model> rank =
      make_model(one_layer, {0, static_cast<int>(tensor)}, {0, static_cast<int>(stages)});
  for (const ParameterBucket& bucket : rank->buckets()) {
    double elements = 0;
    for (const Parameter* member : bucket.members) {
      if (trained && member->frozen) continue;
      (member->over_stages ? sums.shared : elements) += static_cast<double>(member->shape.elements());
    }
    switch (bucket.part) {
      case ParameterBucket::Part::kHead: sums.head += elements; break;
      case ParameterBucket::Part::kLayer: sums.layer += elements; break;
      case ParameterBucket::Part::kEmbedding: sums.embedding += elements; break;
      case ParameterBucket::Part::kBothEnds: sums.tied += elements; break;
    }
  }
  return sums;
}

}  // namespace teratron::plan
