#include "optim/adamw_optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace teratron {

double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, const Mesh& mesh,
                     std::span<double> riders) {
  std::vector<TensorRef> gradients;
  bool sharded = false;
  for (const Parameter* parameter : parameters) {
    sharded = sharded || parameter->sharding.ranks > 1;
    const ElementRange own = own_shard(*parameter);
    const bool counts =
        parameter->stage == mesh.pipeline->rank() && (parameter->is_split() || parameter->place.rank == 0);
    if (counts && own.count() > 0) gradients.push_back(slice_of(parameter->gradient, own));
  }
  std::vector<double> sums = {backend.sum_of_squares(gradients)};
  sums.insert(sums.end(), riders.begin(), riders.end());
  mesh.model->all_reduce_host(sums);
  std::copy(sums.begin() + 1, sums.end(), riders.begin());
  double sum = sums.front();
  if (sharded) mesh.data->all_reduce_host({&sum, 1});
  return std::sqrt(sum);
}

void adamw_update(Backend& backend, std::span<Parameter* const> parameters, const AdamWSettings& settings,
                  const AdamWStep& step) {
  const double norm = step.gradient_norm * step.gradient_scale;
  const double coefficient = settings.clip > 0 ? std::min(1.0, settings.clip / (norm + 1e-6)) : 1.0;
  const auto power = static_cast<double>(step.update);
  AdamW args{.learning_rate = step.learning_rate,
             .beta1 = settings.beta1,
             .beta2 = settings.beta2,
             .epsilon = settings.epsilon,
             .correction1 = 1.0 - std::pow(settings.beta1, power),
             .correction2 = 1.0 - std::pow(settings.beta2, power),
             .gradient_scale = coefficient * step.gradient_scale};
  for (const Parameter* parameter : parameters) {
    const ElementRange own = own_shard(*parameter);
    if (own.count() == 0) continue;
    const TensorRef value = slice_of(parameter->value, own);
    const bool has_master = static_cast<bool>(parameter->state.master);
    args.parameters.push_back({.value = has_master ? parameter->state.master : value,
                               .gradient = slice_of(parameter->gradient, own),
                               .moment1 = parameter->state.moment1,
                               .moment2 = parameter->state.moment2,
                               .working = has_master ? value : TensorRef(),
                               .weight_decay = parameter->decay ? settings.weight_decay : 0.0,
                               .rounding = {.seed = step.seed,
                                            .purpose = RandomPurpose::kMomentRounding,
                                            .stream = parameter->number,
                                            .step = static_cast<std::uint32_t>(step.update)},
                               .places = places_of(*parameter)});
  }
  backend.adamw(args);
}

}  // namespace teratron
