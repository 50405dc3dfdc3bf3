#include "ops/trials/operations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace teratron::testing {
namespace {

// Lengths of flat arrays, some longer than what one thread takes at a time.
std::int64_t some_length(Random& random) {
  return random.one_of<std::int64_t>({0, 1, 2, 3, 7, 8, 9, 31, 64, 1000, 4099, 70001});
}

Precision some_precision(Random& random) { return random.one_of({Precision::kCompute, Precision::kAccumulation}); }

// `gradient`: dx of dy in its place or apart, with x beside them; else y of x.
Trial activation_trial(Random& random, bool gradient, Tolerance tolerance) {
  const Shape shape{random.below(3), std::max<std::int64_t>(1, some_length(random))};
  const Activation activation = random.one_of(
      {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu, Activation::kTanh, Activation::kRelu});
  const bool in_place = random.coin();
  const std::string from = gradient ? "dy" : "x", to = gradient ? "dx" : "y";
  Trial trial{
      .sizes = fmt::format("{} activation={} {}", shape, static_cast<int>(activation), in_place ? "in place" : "apart"),
      .arguments = {},
      .run = {}};
  if (gradient) trial.input("x", shape, random.normals(shape));
  if (in_place) {
    trial.in_out(to, shape, random.normals(shape), tolerance);
  } else {
    trial.input(from, shape, random.normals(shape));
    trial.output(to, shape, tolerance);
  }
  trial.run = [=](Backend& backend, const Views& views) {
    const TensorRef read = views[in_place ? to : from];
    if (gradient) {
      backend.activation_backward({.dx = views[to], .dy = read, .x = views["x"], .activation = activation});
    } else {
      backend.activation_forward({.y = views[to], .x = read, .activation = activation});
    }
  };
  return trial;
}

}  // namespace

// Sixteen steps for exp, a division and a dozen terms of a polynomial.
Trial activation_forward_trial(Random& random) { return activation_trial(random, false, sum_tolerance(1, 16, 1)); }

// The slope of GELU's tanh form multiplies the rounding of one minus a sigmoid by up to u * (1.6 + 0.2 u^2), which is
// 30 where u is 4.5.
Trial activation_backward_trial(Random& random) { return activation_trial(random, true, sum_tolerance(1, 64, 1)); }

// Multiples of 1/64 up to 4: sums and squares of a few of them are exact in fp32.
Values some_sixty_fourths(Random& random, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back((static_cast<double>(random.below(513)) - 256) / 64);
  return values;
}

ElementIndices some_places(Random& random, std::int64_t count) {
  const std::int64_t run = 1 + random.below(count + 3);
  return {.first = random.below(5), .run = run, .whole_run = run + random.below(7), .offset = random.below(9)};
}

// Room for u16 remainders, which no argument of a trial can be, with borders of zeros.
class Remainders {
 public:
  Remainders(Backend& backend, std::int64_t count, std::int64_t offset)
      : backend_(backend),
        all_(backend, DType::kU16, {count + 2 * kBorder}),
        view_(all_.ref().slice(0, kBorder - offset, kBorder - offset + count)) {
    backend.fill_zero(all_);
  }
  const TensorRef& view() const { return view_; }

  void check_borders() const {
    backend_.fill_zero(view_);
    std::vector<std::uint16_t> host(static_cast<std::size_t>(all_.ref().elements()));
    backend_.download(host.data(), all_);
    check(std::ranges::count(host, 0) == std::ssize(host), "nothing beside the remainders was written");
  }

 private:
  static constexpr std::int64_t kBorder = 64;
  Backend& backend_;
  Tensor all_;
  TensorRef view_;
};

// A few parameters, or more than a launch on a GPU takes. Masters of bf16 are split before the call and joined after
// it. Moments in bf16 are exact before they are rounded by chance, and so are the same bits everywhere.
Trial adamw_trial(Random& random) {
  const bool many = random.below(4) == 0, has_working = random.coin(), is_short = random.below(3) == 0;
  const std::int64_t count = many ? 40 + random.below(40) : 1 + random.below(3);
  const auto step = static_cast<double>(1 + random.below(50));
  Trial trial{.sizes = fmt::format("step={} n=", step), .arguments = {}, .run = {}};
  std::vector<double> decays;
  std::vector<ElementIndices> places;
  const Precision state = Precision::kAccumulation, moments = is_short ? Precision::kBF16 : state;
  const Tolerance of_moments = is_short ? Tolerance{} : sum_tolerance(1, 16);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = many ? random.below(20) : some_length(random);
    trial.sizes += fmt::format("{},", n);
    decays.push_back(random.coin() ? 0.1 : 0.0);
    // A second moment that is not much smaller than the first one's square: where it is, no gradients led there, and
    // the step would have no bound.
    const auto numbers = [&] { return is_short ? some_sixty_fourths(random, n) : random.normals({n}); };
    Values moment2 = numbers();
    for (double& value : moment2) value = 0.25 + value * value;
    if (is_short) moment2 = rounded(moment2, DType::kBF16);
    places.push_back(some_places(random, n));
    trial.in_out(fmt::format("value{}", i), {n}, random.normals({n}), sum_tolerance(1, 16), state);
    trial.input(fmt::format("gradient{}", i), {n}, numbers(), state);
    trial.in_out(fmt::format("moment1 {}", i), {n}, numbers(), of_moments, moments);
    trial.in_out(fmt::format("moment2 {}", i), {n}, moment2, of_moments, moments);
    if (has_working) trial.output(fmt::format("working{}", i), {n}, sum_tolerance(1, 16));
  }
  trial.run = [=](Backend& backend, const Views& views) {
    AdamW args{.learning_rate = 0.01,
               .beta1 = is_short ? 0.5 : 0.9,
               .beta2 = is_short ? 0.5 : 0.95,
               .epsilon = 1e-8,
               .correction1 = 1 - std::pow(0.9, step),
               .correction2 = 1 - std::pow(0.95, step),
               .gradient_scale = is_short ? 1 : 0.7};
    std::vector<Remainders> remainders;
    const bool is_split = has_working && backend.compute_dtype() == DType::kBF16;
    for (std::size_t i = 0; i < decays.size(); ++i) {
      const TensorRef value = views[fmt::format("value{}", i)], working = views[fmt::format("working{}", i)];
      if (is_split) {
        remainders.emplace_back(backend, value.elements(), static_cast<std::int64_t>(i % 3));
        backend.split_floats(working, remainders.back().view(), value);
      }
      args.parameters.push_back({.value = is_split ? remainders.back().view() : value,
                                 .gradient = views[fmt::format("gradient{}", i)],
                                 .moment1 = views[fmt::format("moment1 {}", i)],
                                 .moment2 = views[fmt::format("moment2 {}", i)],
                                 .working = working,
                                 .weight_decay = decays[i],
                                 .rounding = {.seed = 5, .purpose = RandomPurpose::kMomentRounding, .step = 7},
                                 .indices = places[i]});
    }
    backend.adamw(args);
    for (std::size_t i = 0; i < remainders.size(); ++i) {
      const TensorRef value = views[fmt::format("value{}", i)];
      backend.join_floats(value, views[fmt::format("working{}", i)], remainders[i].view());
      remainders[i].check_borders();
    }
  };
  return trial;
}

// The upper half is the value rounded to bf16; together they are the value, or next to it where that is midway.
Trial split_floats_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.input("from", {n}, random.normals({n}), Precision::kAccumulation);
  trial.output("nearest", {n}, {}, Precision::kBF16);
  trial.output("joined", {n}, sum_tolerance(1, 1), Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.copy(views["nearest"], views["from"]);
    backend.copy(views["joined"], views["from"]);
    if (backend.accumulation_dtype() != DType::kF32) return;
    const Remainders remainders(backend, n, 1);
    backend.split_floats(views["nearest"], remainders.view(), views["from"]);
    backend.join_floats(views["joined"], views["nearest"], remainders.view());
    remainders.check_borders();
  };
  return trial;
}

Trial sum_of_squares_trial(Random& random) {
  Trial trial{.sizes = "n=", .arguments = {}, .run = {}};
  const std::int64_t count = 1 + random.below(4);
  std::int64_t terms = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = some_length(random);
    trial.sizes += fmt::format("{},", n);
    trial.input(fmt::format("x{}", i), {n}, random.normals({n}), some_precision(random));
    terms += n;
  }
  trial.output("sum", {1}, sum_tolerance(terms), Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    std::vector<TensorRef> all;
    double one_by_one = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(views[fmt::format("x{}", i)]);
      one_by_one += backend.sum_of_squares(all.back());
    }
    const double together = backend.sum_of_squares(all);
    check(together == one_by_one, "sums of squares together have the bits of those one by one");
    backend.fill(views["sum"], together);
  };
  return trial;
}

// Tallies of two views, one after the other. Bit patterns depend on the type that a back end stores, so a test of their
// own has them (tally_test.cc).
Trial tally_trial(Random& random) {
  const std::int64_t n = some_length(random), m = some_length(random);
  Trial trial{.sizes = fmt::format("n={} m={}", n, m), .arguments = {}, .run = {}};
  trial.input("x", {n}, random.normals({n}), some_precision(random));
  trial.input("y", {m}, random.normals({m}), some_precision(random));
  trial.output("squares", {1}, sum_tolerance(n + m), Precision::kDouble);
  trial.output("largest", {1}, {}, Precision::kDouble);
  trial.run = [=](Backend& backend, const Views& views) {
    const Tensor memory(backend, DType::kU8, {sizeof(Tally)});
    backend.fill_zero(memory);
    backend.tally(memory, views["x"]);
    backend.tally(memory, views["y"]);
    Tally tally;
    backend.download(&tally, memory);
    backend.fill(views["squares"], tally.squares);
    backend.fill(views["largest"], double{tally.largest});
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

// From the accumulation type to the compute type, which rounds, and back, which does not.
Trial copy_converting_trial(Random& random) {
  const std::int64_t rows = some_rows(random), columns = some_features(random);
  const bool contiguous = random.coin();
  Trial trial{.sizes = fmt::format("[{}, {}] contiguous={}", rows, columns, contiguous), .arguments = {}, .run = {}};
  const Shape shape{rows, columns}, wide{rows, columns + 3};
  trial.input("from", contiguous ? shape : wide, random.normals(contiguous ? shape : wide), Precision::kAccumulation);
  trial.output("to", shape, {kUnitRoundoff, 0});
  trial.output("back", shape, Tolerance{kUnitRoundoff, 0}.carrying(8), Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.copy(views["to"], contiguous ? views["from"] : views["from"].slice(1, 2, columns + 2));
    backend.copy(views["back"], views["to"]);
  };
  return trial;
}

Trial fill_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  trial.output("view", {n}, {kUnitRoundoff, 0}, some_precision(random));
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
  // A block of the columns of a larger matrix, or one flat array.
  const std::int64_t first = random.below(1000), rows = random.coin() ? 1 : some_rows(random);
  const std::int64_t columns = rows == 1 ? some_length(random) : some_features(random);
  const std::int64_t stride = random.coin() ? 0 : columns + random.below(9);
  Trial trial{.sizes = fmt::format("[{}, {}] first_index={} row_stride={}", rows, columns, first, stride),
              .arguments = {},
              .run = {}};
  const RandomStream stream{.seed = static_cast<std::uint64_t>(random.below(1 << 30)), .stream = 7};
  // Half a unit of values up to 6 deviations.
  trial.output("view", {rows, columns}, {8 * kUnitRoundoff, 0}, some_precision(random));
  trial.run = [=](Backend& backend, const Views& views) {
    backend.fill_normal(views["view"], stream, first, 0.02, stride);
  };
  return trial;
}

// With keep 0 the first operand is not read, so it holds NaN.
Trial scale_add_trial(Random& random) {
  const std::int64_t n = some_length(random);
  const double keep = random.one_of({0.0, 1.0, 0.95, -4.775, 1 - 1e-5, 0x1p-32, 1e-6}),
               scale = random.one_of({1.0, 2.0315, -1e-3, 0x1p-34});
  Trial trial{.sizes = fmt::format("n={} keep={} scale={}", n, keep, scale), .arguments = {}, .run = {}};
  trial.in_out("to", {n}, random.normals({n}), sum_tolerance(2, 5), some_precision(random));
  trial.input("from", {n}, random.normals({n}), some_precision(random));
  trial.run = [=](Backend& backend, const Views& views) {
    if (keep == 0 && n > 0) backend.fill(views["to"], std::numeric_limits<double>::quiet_NaN());
    backend.scale_add(views["to"], keep, views["from"], scale);
  };
  return trial;
}

Trial add_trial(Random& random) {
  const std::int64_t n = some_length(random);
  Trial trial{.sizes = fmt::format("n={}", n), .arguments = {}, .run = {}};
  const Precision precision = some_precision(random);
  trial.in_out("to", {n}, random.normals({n}), sum_tolerance(1), precision);
  trial.input("from", {n}, random.normals({n}), precision);
  trial.run = [](Backend& backend, const Views& views) { backend.add(views["to"], views["from"]); };
  return trial;
}

}  // namespace teratron::testing
