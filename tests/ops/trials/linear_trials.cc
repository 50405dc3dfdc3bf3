#include "ops/trials/operations.h"

#include <algorithm>
#include <cmath>

namespace teratron::testing {
namespace {

struct Sizes {
  std::int64_t rows, inputs, outputs;
  explicit Sizes(Random& random)
      : rows(some_rows(random)), inputs(some_features(random)), outputs(some_features(random)) {
    if (random.below(3) > 0) return;
    // One size beyond any block of rows or columns, the others small to keep the reference quick.
    rows = std::min<std::int64_t>(rows, 13);
    inputs = std::min<std::int64_t>(inputs, 33);
    outputs = std::min<std::int64_t>(outputs, 33);
    *random.one_of({&rows, &inputs, &outputs}) = random.one_of<std::int64_t>({521, 1031, 2049});
  }
  std::string text(Activation activation = Activation::kNone) const {
    return fmt::format("T={} I={} O={} activation={}", rows, inputs, outputs, static_cast<int>(activation));
  }
};

// So that sums of `terms` products have a standard deviation of 1, where GELU is neither zero nor the identity.
double unit_sum(std::int64_t terms) { return 1 / std::sqrt(static_cast<double>(terms)); }

// The rounding of a pre-activation of up to 6 (it is the sum of two unit normals), times GELU's slope of at most 1.13,
// against a scale of at least 1.
constexpr double kFromPreActivation = 8;

}  // namespace

Trial linear_forward_trial(Random& random) {
  const Sizes sizes(random);
  const Activation activation = some_activation(random);
  const auto [T, I, O] = std::array{sizes.rows, sizes.inputs, sizes.outputs};
  Trial trial{.sizes = sizes.text(activation), .arguments = {}, .run = {}};
  trial.input("x", {T, I}, random.normals({T, I}));
  trial.input("weight", {O, I}, random.normals({O, I}, 0, unit_sum(I)));
  if (random.coin()) trial.input("bias", {O}, random.normals({O}));
  trial.output("y", {T, O}, sum_tolerance(I, 4, 1).in_products(I));
  if (activation != Activation::kNone) {
    trial.output("activated", {T, O}, sum_tolerance(I, 16, 1).carrying(kFromPreActivation).in_products(I));
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.linear_forward({.y = views["y"],
                            .x = views["x"],
                            .weight = views["weight"],
                            .bias = views["bias"],
                            .activation = activation,
                            .activated = views["activated"]});
  };
  return trial;
}

Trial linear_input_gradient_trial(Random& random) {
  const Sizes sizes(random);
  const Activation activation = some_activation(random);
  const bool in_place = random.coin();
  const auto [T, I, O] = std::array{sizes.rows, sizes.inputs, sizes.outputs};
  Trial trial{.sizes = sizes.text(activation), .arguments = {}, .run = {}};
  trial.input("dy", {T, O}, random.normals({T, O}));
  trial.input("weight", {O, I}, random.normals({O, I}, 0, unit_sum(O)));
  trial.output("dx", {T, I}, sum_tolerance(O, 16, 1).in_products(O, kFromPreActivation));
  if (activation != Activation::kNone && in_place) {
    trial.in_out("activated", {T, I}, random.normals({T, I}), sum_tolerance(1, 16, 1));
  } else if (activation != Activation::kNone) {
    trial.input("pre_activation", {T, I}, random.normals({T, I}));
    trial.output("activated", {T, I}, sum_tolerance(1, 16, 1));
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.linear_input_gradient({.dx = views["dx"],
                                   .dy = views["dy"],
                                   .weight = views["weight"],
                                   .activation = activation,
                                   .pre_activation = views[in_place ? "activated" : "pre_activation"],
                                   .activated = views["activated"]});
  };
  return trial;
}

Trial linear_weight_gradient_trial(Random& random) {
  const Sizes sizes(random);
  const bool accumulate = random.coin();
  const auto [T, I, O] = std::array{sizes.rows, sizes.inputs, sizes.outputs};
  Trial trial{.sizes = sizes.text() + (accumulate ? " accumulate" : ""), .arguments = {}, .run = {}};
  trial.input("dy", {T, O}, random.normals({T, O}));
  trial.input("x", {T, I}, random.normals({T, I}));
  const Tolerance tolerance = sum_tolerance(T, 4, 1).in_products(T);
  const bool bias = random.coin();
  if (accumulate) {
    trial.in_out("dweight", {O, I}, random.normals({O, I}), tolerance, Precision::kAccumulation);
    if (bias) trial.in_out("dbias", {O}, random.normals({O}), tolerance, Precision::kAccumulation);
  } else {
    trial.output("dweight", {O, I}, tolerance, Precision::kAccumulation);
    if (bias) trial.output("dbias", {O}, tolerance, Precision::kAccumulation);
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.linear_weight_gradient({.dweight = views["dweight"],
                                    .dy = views["dy"],
                                    .x = views["x"],
                                    .dbias = views["dbias"],
                                    .accumulate = accumulate});
  };
  return trial;
}

}  // namespace teratron::testing
