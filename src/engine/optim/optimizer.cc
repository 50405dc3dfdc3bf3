#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

namespace teratron {

double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, const Mesh& mesh,
                     std::span<double> extra_sums) {
  std::vector<TensorRef> gradients;
  bool sharded = false;
  for (const Parameter* parameter : parameters) {
    if (parameter->frozen) continue;
    sharded = sharded || parameter->sharding.ranks > 1;
    const ElementRange own = own_shard(*parameter);
    const bool counts = parameter->stage == mesh.pipeline->rank() && parameter->counts();
    if (counts && own.count() > 0) gradients.push_back(slice_of(parameter->gradient, own));
  }
  std::vector<double> sums = {backend.sum_of_squares(gradients)};
  sums.insert(sums.end(), extra_sums.begin(), extra_sums.end());
  mesh.model->all_reduce_host(sums);
  std::copy(sums.begin() + 1, sums.end(), extra_sums.begin());
  double sum = sums.front();
  if (sharded) mesh.data->all_reduce_host({&sum, 1});
  return std::sqrt(sum);
}

double clipped_scale(const UpdateStep& step, double clip) {
  const double norm = step.gradient_norm * step.gradient_scale;
  const double coefficient = clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
  return coefficient * step.gradient_scale;
}

}  // namespace teratron
