#include "ops/operations.h"

#include <cmath>

namespace teratron::testing {
namespace {

// Lengths of flat arrays, some longer than what one thread takes at a time.
std::int64_t some_length(Random& random) {
  return random.one_of<std::int64_t>({0, 1, 2, 3, 7, 8, 9, 31, 64, 1000, 4099, 70001});
}

}  // namespace

Trial adamw_trial(Random& random) {
  const std::int64_t n = some_length(random);
  const auto step = static_cast<double>(1 + random.below(50));
  const bool decays = random.coin();
  Trial trial{.sizes = fmt::format("n={} step={} decays={}", n, step, decays), .arguments = {}, .run = {}};
  // A second moment that is not much smaller than the first one's square: where it is, no gradients led there, and the
  // step would have no bound.
  Values moment2 = random.normals({n});
  for (double& value : moment2) value = 0.2 + value * value;
  trial.in_out("parameter", {n}, random.normals({n}), sum_tolerance(1, 16));
  trial.input("gradient", {n}, random.normals({n}));
  trial.in_out("moment1", {n}, random.normals({n}), sum_tolerance(1, 16));
  trial.in_out("moment2", {n}, moment2, sum_tolerance(1, 16));
  trial.run = [=](Backend& backend, const Views& views) {
    backend.adamw({.parameter = views["parameter"],
                   .gradient = views["gradient"],
                   .moment1 = views["moment1"],
                   .moment2 = views["moment2"],
                   .learning_rate = 0.01,
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .epsilon = 1e-8,
                   .weight_decay = decays ? 0.1 : 0.0,
                   .correction1 = 1 - std::pow(0.9, step),
                   .correction2 = 1 - std::pow(0.95, step),
                   .gradient_scale = 0.7});
  };
  return trial;
}

Trial sum_of_squares_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.input("x", {n}, random.normals({n}));
  trial.output("sum", {1}, sum_tolerance(n));
  trial.run = [](Backend& backend, const Views& views) {
    backend.fill(views["sum"], backend.sum_of_squares(views["x"]));
  };
  return trial;
}

// From a slice to a transposed slice, and back into a larger tensor.
Trial copy_trial(Random& random) {
  const std::int64_t a = some_rows(random), b = 1 + random.below(4), c = some_features(random);
  const bool contiguous = random.coin();
  Trial trial{.sizes = fmt::format("[{}, {}, {}] contiguous={}", a, b, c, contiguous), .arguments = {}, .run = {}};
  trial.input("from", {a, b + 2, c + 1}, random.normals({a, b + 2, c + 1}));
  trial.output("to", {b, a, c}, {});
  trial.output("twin", {a, b + 2, c + 1}, {});
  trial.run = [=](Backend& backend, const Views& views) {
    backend.copy(views["twin"], views["from"]);
    if (contiguous) return;
    for (std::int64_t i = 0; i < b; ++i) {
      backend.copy(views["to"].select(0, i), views["from"].slice(2, 1, c + 1).select(1, i + 1));
    }
    backend.copy(views["to"].slice(2, 0, c / 2), views["to"].slice(2, c - c / 2, c));
  };
  return trial;
}

Trial fill_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.output("view", {n}, {kUnitRoundoff, 0});
  trial.run = [](Backend& backend, const Views& views) { backend.fill(views["view"], -0.3); };
  return trial;
}

Trial fill_zero_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.output("view", {n}, {});
  trial.run = [](Backend& backend, const Views& views) { backend.fill_zero(views["view"]); };
  return trial;
}

Trial fill_normal_trial(Random& random) {
  const std::int64_t n = some_length(random), first = random.below(1000);
  Trial trial{.sizes = fmt::format("n={} first_index={}", n, first), .arguments = {}, .run = {}};
  const RandomStream stream{.seed = static_cast<std::uint64_t>(random.below(1 << 30)), .stream = 7};
  trial.output("view", {n}, {8 * kUnitRoundoff, 0});  // half a unit of values up to 6 deviations
  trial.run = [=](Backend& backend, const Views& views) { backend.fill_normal(views["view"], stream, first, 0.02); };
  return trial;
}

Trial add_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.in_out("to", {n}, random.normals({n}), sum_tolerance(1));
  trial.input("from", {n}, random.normals({n}));
  trial.run = [](Backend& backend, const Views& views) { backend.add(views["to"], views["from"]); };
  return trial;
}

}  // namespace teratron::testing
