#include "optim/adamw_optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace teratron {

double gradient_norm(Backend& backend, std::span<Parameter* const> parameters, Communicator& model_group) {
  double sum = 0;
  std::string not_finite;
  for (const Parameter* parameter : parameters) {
    const double square = backend.sum_of_squares(parameter->gradient);
    if (!std::isfinite(square) && not_finite.empty()) not_finite = parameter->name;
    if (parameter->is_split() || parameter->place.rank == 0) sum += square;
  }
  model_group.all_reduce_host({&sum, 1});
  if (std::isfinite(sum)) return std::sqrt(sum);
  for (const std::string& name : model_group.all_gather_host(not_finite)) {
    if (name.empty()) continue;
    throw_user_error(
        "the gradient of '{}' is not finite: training has diverged; the weights were not updated. Lower --lr, lengthen "
        "--lr-warmup-iters, or set --clip-grad, and go on from the last checkpoint",
        name);
  }
  throw_user_error(
      "the squares of the gradients overflow: training has diverged; the weights were not updated. Lower --lr");
}

double adamw_update(Backend& backend, std::span<Parameter* const> parameters, Communicator& model_group,
                    const AdamWSettings& settings, double learning_rate, std::int64_t update) {
  const double norm = gradient_norm(backend, parameters, model_group);
  const double coefficient = settings.clip > 0 ? std::min(1.0, settings.clip / (norm + 1e-6)) : 1.0;
  const auto power = static_cast<double>(update);
  AdamW args{.learning_rate = learning_rate,
             .beta1 = settings.beta1,
             .beta2 = settings.beta2,
             .epsilon = settings.epsilon,
             .correction1 = 1.0 - std::pow(settings.beta1, power),
             .correction2 = 1.0 - std::pow(settings.beta2, power),
             .gradient_scale = coefficient};
  for (const Parameter* parameter : parameters) {
    args.parameter = parameter->value;
    args.gradient = parameter->gradient;
    args.moment1 = parameter->moment1;
    args.moment2 = parameter->moment2;
    args.weight_decay = parameter->decay ? settings.weight_decay : 0.0;
    backend.adamw(args);
  }
  return norm;
}

}  // namespace teratron
