#include "optim/adamw.h"

#include <cmath>

namespace teratron {
namespace {

constexpr const char *kMoment1 = "moment1", *kMoment2 = "moment2";

}  // namespace

std::vector<OptimizerSlot> AdamWOptimizer::slots(const Parameter& /*parameter*/, DType compute) const {
  const DType dtype = bf16_moments_ ? DType::kBF16 : accumulation_dtype_of(compute);
  return {{.name = kMoment1, .dtype = dtype}, {.name = kMoment2, .dtype = dtype}};
}

void AdamWOptimizer::update(Backend& backend, const Mesh& /*mesh*/, std::span<Parameter* const> parameters,
                            const UpdateStep& step, Carver /*workspace*/) const {
  const auto power = static_cast<double>(step.update);
  AdamW args{.learning_rate = step.learning_rate,
             .beta1 = settings_.beta1,
             .beta2 = settings_.beta2,
             .epsilon = settings_.epsilon,
             .correction1 = 1.0 - std::pow(settings_.beta1, power),
             .correction2 = 1.0 - std::pow(settings_.beta2, power),
             .gradient_scale = clipped_scale(step, settings_.clip)};
  for (const Parameter* parameter : parameters) {
    const ElementRange own = own_shard(*parameter);
    if (own.count() == 0) continue;
    const TensorRef value = slice_of(parameter->value, own);
    const bool has_master = static_cast<bool>(parameter->state.master);
    args.parameters.push_back({.value = has_master ? parameter->state.master : value,
                               .gradient = slice_of(parameter->gradient, own),
                               .moment1 = parameter->state.slot(kMoment1),
                               .moment2 = parameter->state.slot(kMoment2),
                               .working = has_master ? value : TensorRef(),
                               .weight_decay = parameter->decay ? settings_.weight_decay : 0.0,
                               .rounding = {.seed = step.seed,
                                            .purpose = RandomPurpose::kMomentRounding,
                                            .stream = parameter->number,
                                            .step = static_cast<std::uint32_t>(step.update)},
                               .indices = indices_of(*parameter)});
  }
  backend.adamw(args);
}

}  // namespace teratron
