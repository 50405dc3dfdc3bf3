#include "ops/trials/operations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace teratron::testing {
namespace {

struct Sizes {
  std::int64_t rows, inputs, outputs;
  Values lengths = {};  // of the sequences that the rows are; empty: no padding

  static Sizes any(Random& random) {
    Sizes sizes{some_rows(random), some_features(random), some_features(random)};
    if (random.below(3) == 0) {
      // One size beyond any block of rows or columns, the others small to keep the reference quick.
      sizes.rows = std::min<std::int64_t>(sizes.rows, 13);
      sizes.inputs = std::min<std::int64_t>(sizes.inputs, 33);
      sizes.outputs = std::min<std::int64_t>(sizes.outputs, 33);
      *random.one_of({&sizes.rows, &sizes.inputs, &sizes.outputs}) = random.one_of<std::int64_t>({521, 1031, 2049});
    }
    if (random.coin()) sizes.draw_lengths(random);
    return sizes;
  }
  // Mostly such as a library has epilogues for, and small, since each product is computed many times to be timed.
  static Sizes timed(Random& random) {
    const auto features = [&] { return random.one_of<std::int64_t>({3, 8, 16, 32, 40}); };
    return {random.one_of<std::int64_t>({1, 2, 4, 7, 8, 10, 13}), features(), features()};
  }

  // Draws lengths of sequences without text, with some, and without padding.
  void draw_lengths(Random& random) {
    if (rows == 0) return;
    const std::int64_t sequences = 1 + random.below(std::min<std::int64_t>(rows, 7));
    rows = rows / sequences * sequences;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const std::int64_t length =
          random.below(3) == 0 ? rows / sequences * random.below(2) : random.below(rows / sequences + 1);
      lengths.push_back(static_cast<double>(length));
    }
  }
  bool is_padding(std::int64_t row) const {
    if (lengths.empty()) return false;
    const std::int64_t tokens = rows / std::ssize(lengths);
    return static_cast<double>(row % tokens) >= lengths[static_cast<std::size_t>(row / tokens)];
  }
  void add_lengths(Trial& trial) const {
    if (!lengths.empty()) trial.ids("lengths", {std::ssize(lengths)}, lengths);
  }
  // Nothing reads padding, so that it is not compared.
  void clear_padding(Backend& backend, const TensorRef& view) const {
    for (std::int64_t row = 0; view && row < rows; ++row) {
      if (is_padding(row)) backend.fill_zero(view.slice(0, row, row + 1));
    }
  }
  // The next layer may multiply padding, so that it must have been written.
  void require_finite(Backend& backend, const TensorRef& view) const {
    if (!view) return;
    for (const double value : download_values(backend, view)) check(std::isfinite(value), "a value is not finite");
  }
  Values gradients(Random& random) const {  // of y
    Values values = random.normals({rows, outputs});
    for (std::int64_t row = 0; row < rows; ++row) {
      if (is_padding(row)) std::fill_n(values.begin() + row * outputs, outputs, 0.0);
    }
    return values;
  }

  std::string text(Activation activation = Activation::kNone) const {
    return fmt::format("T={} I={} O={} lengths={} activation={}", rows, inputs, outputs, fmt::join(lengths, ","),
                       static_cast<int>(activation));
  }
};

// So that sums of `terms` products have a standard deviation of 1, where GELU is neither zero nor the identity.
double unit_sum(std::int64_t terms) { return 1 / std::sqrt(static_cast<double>(terms)); }

// The rounding of a pre-activation of up to 6 (it is the sum of two unit normals), times GELU's slope of at most 1.13,
// against a scale of at least 1.
constexpr double kFromPreActivation = 8;
// GELU is half its argument, of up to 6, times 1 + tanh.
constexpr double kFromTanh = 3;

// The activation that libraries have epilogues for, more often than others.
Activation some_timed_activation(Random& random) {
  return random.coin() ? Activation::kGeluTanh : some_activation(random);
}

Trial forward_trial(Random& random, const Sizes& sizes, Activation activation) {
  const std::int64_t T = sizes.rows, I = sizes.inputs, O = sizes.outputs;
  const bool rows_alone = random.coin(), has_gate = activation != Activation::kNone && random.coin();
  Trial trial{.sizes = sizes.text(activation) + (rows_alone ? " rows alone" : "") + (has_gate ? " gate" : ""),
              .arguments = {},
              .run = {}};
  trial.input("x", {T, I}, random.normals({T, I}));
  trial.input("weight", {O, I}, random.normals({O, I}, 0, unit_sum(I)));
  if (random.coin()) trial.input("bias", {O}, random.normals({O}));
  sizes.add_lengths(trial);
  trial.output("y", {T, O}, sum_tolerance(I, 4, 1).in_products(I));
  if (has_gate) trial.input("gate", {T, O}, random.normals({T, O}));
  if (activation != Activation::kNone) {
    trial.output("activated", {T, O}, sum_tolerance(I, 16, 1).carrying(kFromPreActivation).in_products(I, kFromTanh));
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.linear_forward({.y = views["y"],
                            .x = views["x"],
                            .weight = views["weight"],
                            .bias = views["bias"],
                            .activation = activation,
                            .activated = views["activated"],
                            .gate = views["gate"],
                            .rows_alone = rows_alone,
                            .lengths = views["lengths"]});
    for (const TensorRef& output : {views["y"], views["activated"]}) {
      sizes.require_finite(backend, output);
      sizes.clear_padding(backend, output);
    }
  };
  return trial;
}

Trial input_gradient_trial(Random& random, const Sizes& sizes, Activation activation) {
  const bool in_place = random.coin(), has_gate = activation != Activation::kNone && random.coin();
  const bool is_kept = !in_place && random.coin();  // what forward activated
  const std::int64_t T = sizes.rows, I = sizes.inputs, O = sizes.outputs;
  Trial trial{.sizes = sizes.text(activation) + (has_gate ? " gate" : ""), .arguments = {}, .run = {}};
  trial.input("dy", {T, O}, sizes.gradients(random));
  sizes.add_lengths(trial);
  trial.input("weight", {O, I}, random.normals({O, I}, 0, unit_sum(O)));
  // Slopes are made from an exponential, whose argument of up to 10 magnifies the rounding of what it is made from.
  // A product of size 1 and up to 5 deviations is multiplied by a slope of about 1 or, with a gate, two values of up
  // to 4.
  const double rounded = activation == Activation::kNone ? 0 : has_gate ? 5 * 16 : 6;
  const Tolerance gradient = sum_tolerance(O, 32, 1).in_products(O, kFromPreActivation, rounded);
  trial.output("dx", {T, I}, gradient);
  if (activation != Activation::kNone && in_place) {
    trial.in_out("activated", {T, I}, random.normals({T, I}), sum_tolerance(1, 16, 1));
  } else if (activation != Activation::kNone) {
    trial.input("pre_activation", {T, I}, random.normals({T, I}));
    if (!is_kept) trial.output("activated", {T, I}, sum_tolerance(1, 16, 1));
  }
  if (has_gate && in_place) {
    trial.in_out("dgate", {T, I}, random.normals({T, I}), gradient);
  } else if (has_gate) {
    trial.input("gate", {T, I}, random.normals({T, I}));
    trial.output("dgate", {T, I}, gradient);
  }
  trial.run = [=](Backend& backend, const Views& views) {
    backend.linear_input_gradient({.dx = views["dx"],
                                   .dy = views["dy"],
                                   .weight = views["weight"],
                                   .activation = activation,
                                   .pre_activation = views[in_place ? "activated" : "pre_activation"],
                                   .activated = views["activated"],
                                   .gate = views[in_place ? "dgate" : "gate"],
                                   .dgate = views["dgate"],
                                   .lengths = views["lengths"]});
    for (const TensorRef& output : {views["activated"], views["dgate"]}) sizes.clear_padding(backend, output);
  };
  return trial;
}

Trial weight_gradient_trial(Random& random, const Sizes& sizes) {
  const bool accumulate = random.coin();
  const std::int64_t T = sizes.rows, I = sizes.inputs, O = sizes.outputs;
  Trial trial{.sizes = sizes.text() + (accumulate ? " accumulate" : ""), .arguments = {}, .run = {}};
  trial.input("dy", {T, O}, sizes.gradients(random));
  sizes.add_lengths(trial);
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
                                    .accumulate = accumulate,
                                    .lengths = views["lengths"]});
  };
  return trial;
}

}  // namespace

Trial linear_forward_trial(Random& random) {
  const Sizes sizes = Sizes::any(random);
  return forward_trial(random, sizes, some_activation(random));
}

Trial linear_input_gradient_trial(Random& random) {
  const Sizes sizes = Sizes::any(random);
  return input_gradient_trial(random, sizes, some_activation(random));
}

Trial linear_weight_gradient_trial(Random& random) { return weight_gradient_trial(random, Sizes::any(random)); }

Trial timed_linear_forward_trial(Random& random) {
  const Sizes sizes = Sizes::timed(random);
  return forward_trial(random, sizes, some_timed_activation(random));
}

Trial timed_linear_input_gradient_trial(Random& random) {
  const Sizes sizes = Sizes::timed(random);
  return input_gradient_trial(random, sizes, some_timed_activation(random));
}

Trial timed_linear_weight_gradient_trial(Random& random) { return weight_gradient_trial(random, Sizes::timed(random)); }

}  // namespace teratron::testing
