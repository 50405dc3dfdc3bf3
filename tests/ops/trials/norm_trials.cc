#include "ops/trials/operations.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace teratron::testing {
namespace {

constexpr double kEpsilon = 1e-5;

// Back ends hold a row in registers, by more threads the longer it is: some rows are long, and then few.
struct RowSizes {
  std::int64_t rows, hidden;
  explicit RowSizes(Random& random) : rows(some_rows(random)), hidden(some_features(random)) {
    if (random.coin()) return;
    rows = std::min<std::int64_t>(rows, 3);
    hidden = random.one_of<std::int64_t>({1536, 3080, 4999, 5000, 6144, 12288, 16392});
  }
};

// Rows whose standard deviation is about 1 however short they are: with less, the rounding of the mean would be
// magnified without bound. A row of one has none.
Values spread_rows(Random& random, std::int64_t rows, std::int64_t hidden, double mean) {
  Values x = random.normals({rows, hidden}, mean, 0.25);
  for (std::size_t e = 0; e < x.size(); ++e) {
    const bool odd_column = static_cast<std::int64_t>(e) % hidden % 2 == 1;
    x[e] = static_cast<float>(x[e] + (odd_column ? 1 : -1));
  }
  return x;
}

// Roundings of a normalised value: the statistics' own, and the mean's, which is relative to the mean's size.
double normalisation_steps(double mean) { return 16 + 8 * std::abs(mean); }

struct Statistics {
  Values mean, rstd;
};

Statistics statistics_of(const Values& x, std::int64_t rows, std::int64_t hidden, bool is_rms) {
  Statistics statistics;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = x.begin() + r * hidden;
    double sum = 0, squares = 0;
    for (auto value = row; value != row + hidden; ++value) sum += *value;
    const double mean = is_rms ? 0 : sum / static_cast<double>(hidden);
    for (auto value = row; value != row + hidden; ++value) squares += (*value - mean) * (*value - mean);
    statistics.mean.push_back(mean);
    statistics.rstd.push_back(1 / std::sqrt(squares / static_cast<double>(hidden) + kEpsilon));
  }
  return statistics;
}

// Without "mean" and "beta" among the views it is RMS norm.
NormForward norm_of(const Views& views, const TensorRef& x) {
  return {.y = views["y"],
          .mean = views["mean"],
          .rstd = views["rstd"],
          .x = x,
          .gamma = views["gamma"],
          .beta = views["beta"],
          .epsilon = kEpsilon};
}

void add_norm_parameters(Trial& trial, Random& random, std::int64_t hidden, bool is_rms) {
  trial.input("gamma", {hidden}, random.normals({hidden}, 1));
  if (!is_rms) trial.input("beta", {hidden}, random.normals({hidden}));
}

}  // namespace

Trial norm_forward_trial(Random& random) {
  const auto [rows, hidden] = RowSizes(random);
  const double mean = random.one_of({0.0, 8.0});
  const bool is_rms = random.coin();
  const double steps = normalisation_steps(mean);
  Trial trial{
      .sizes = fmt::format("rows={} hidden={} mean={} rms={}", rows, hidden, mean, is_rms), .arguments = {}, .run = {}};
  trial.input("x", {rows, hidden}, spread_rows(random, rows, hidden, mean));
  add_norm_parameters(trial, random, hidden, is_rms);
  trial.output("y", {rows, hidden}, sum_tolerance(hidden, steps, 1));
  if (!is_rms) trial.output("mean", {rows}, sum_tolerance(hidden, 4, 1), Precision::kAccumulation);
  trial.output("rstd", {rows}, sum_tolerance(hidden, steps), Precision::kAccumulation);
  trial.run = [](Backend& backend, const Views& views) { backend.norm_forward(norm_of(views, views["x"])); };
  return trial;
}

Trial norm_apply_trial(Random& random) {
  const auto [rows, hidden] = RowSizes(random);
  const bool is_rms = random.coin();
  const Values x = spread_rows(random, rows, hidden, 0);
  const Statistics statistics = statistics_of(x, rows, hidden, is_rms);
  Trial trial{.sizes = fmt::format("rows={} hidden={} rms={}", rows, hidden, is_rms), .arguments = {}, .run = {}};
  trial.input("x", {rows, hidden}, x);
  if (!is_rms) trial.input("mean", {rows}, statistics.mean, Precision::kAccumulation);
  trial.input("rstd", {rows}, statistics.rstd, Precision::kAccumulation);
  add_norm_parameters(trial, random, hidden, is_rms);
  trial.output("y", {rows, hidden}, sum_tolerance(1, 16, 1));
  trial.run = [](Backend& backend, const Views& views) { backend.norm_apply(norm_of(views, views["x"])); };
  return trial;
}

namespace {

// A norm backward, whose views have `shape`, [.., hidden].
struct BackwardCase {
  bool accumulate_dx, accumulate, is_rms;
  explicit BackwardCase(Random& random)
      : accumulate_dx(random.coin()), accumulate(random.coin()), is_rms(random.coin()) {}
  std::string text() const {
    return fmt::format("accumulate_dx={} accumulate={} rms={}", accumulate_dx, accumulate, is_rms);
  }

  void add_to(Trial& trial, Random& random, const Shape& shape) const {
    const std::int64_t hidden = shape[shape.rank() - 1], rows = shape.elements() / std::max<std::int64_t>(hidden, 1);
    const Values x = spread_rows(random, rows, hidden, 0);
    const Statistics statistics = statistics_of(x, rows, hidden, is_rms);
    trial.input("dy", shape, random.normals(shape));
    trial.input("x", shape, x);
    if (!is_rms) trial.input("mean", {rows}, statistics.mean, Precision::kAccumulation);
    trial.input("rstd", {rows}, statistics.rstd, Precision::kAccumulation);
    trial.input("gamma", {hidden}, random.normals({hidden}, 1));
    const Tolerance sums = sum_tolerance(rows, 16, 1);
    if (accumulate_dx) {
      trial.in_out("dx", shape, random.normals(shape), dx_tolerance(hidden));
    } else {
      trial.output("dx", shape, dx_tolerance(hidden));
    }
    for (const char* name : {"dgamma", "dbeta"}) {
      if (is_rms && name == std::string_view("dbeta")) continue;
      if (accumulate) {
        trial.in_out(name, {hidden}, random.normals({hidden}), sums, Precision::kAccumulation);
      } else {
        trial.output(name, {hidden}, sums, Precision::kAccumulation);
      }
    }
  }

  // dx's summands are rstd times a gradient of size 1.
  static Tolerance dx_tolerance(std::int64_t hidden) {
    return sum_tolerance(hidden, 24, hidden == 1 ? 1 / std::sqrt(kEpsilon) : 1);
  }

  NormBackward call(const Views& views) const {
    return {.dx = views["dx"],
            .dgamma = views["dgamma"],
            .dbeta = views["dbeta"],
            .dy = views["dy"],
            .x = views["x"],
            .mean = views["mean"],
            .rstd = views["rstd"],
            .gamma = views["gamma"],
            .accumulate_dx = accumulate_dx,
            .accumulate = accumulate};
  }
};

}  // namespace

Trial norm_backward_trial(Random& random) {
  const auto [rows, hidden] = RowSizes(random);
  const BackwardCase of(random);
  Trial trial{.sizes = fmt::format("rows={} hidden={} {}", rows, hidden, of.text()), .arguments = {}, .run = {}};
  of.add_to(trial, random, {rows, hidden});
  trial.run = [=](Backend& backend, const Views& views) { backend.norm_backward(of.call(views)); };
  return trial;
}

Trial residual_add_norm_backward_trial(Random& random) {
  const std::int64_t batch = 1 + random.below(3);
  const auto [tokens, hidden] = RowSizes(random);
  const Shape shape{batch, tokens, hidden};
  const BackwardCase of(random);
  Dropout dropout = some_dropout(random, tokens);
  Trial trial{.sizes = fmt::format("[batch, tokens, hidden]={} {} p={}", shape, of.text(), dropout.probability),
              .arguments = {},
              .run = {}};
  of.add_to(trial, random, shape);
  // The error of dx as it was stored, up to 6 deviations, and that of its arithmetic, which a mask enlarges.
  const double factor = dropout.active() ? double{dropout.scale()} : 1;
  Tolerance dbranch = BackwardCase::dx_tolerance(hidden).carrying(6 * factor);
  dbranch.relative *= factor;
  trial.output("dbranch", shape, dbranch);
  move_counters(trial, random, dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.residual_add_norm_backward(
        {.norm = of.call(views),
         .add = {.dbranch = views["dbranch"], .dsum = views["dx"], .dropout = with_counters(dropout, views)}});
  };
  return trial;
}

Trial residual_add_norm_trial(Random& random) {
  const std::int64_t batch = 1 + random.below(3);
  const auto [tokens, hidden] = RowSizes(random);
  const std::int64_t rows = batch * tokens;
  Dropout dropout = some_dropout(random, tokens);
  const bool in_place = random.coin(), is_rms = random.coin();
  Trial trial{.sizes = fmt::format("batch={} tokens={} hidden={} p={} rms={}", batch, tokens, hidden,
                                   dropout.probability, is_rms),
              .arguments = {},
              .run = {}};
  const Shape shape{batch, tokens, hidden};
  // A residual wide enough that no row's standard deviation is small, whatever the branch and its mask add.
  Values residual = spread_rows(random, rows, hidden, 0);
  for (double& value : residual) value *= 8;
  if (in_place) {
    trial.in_out("sum", shape, residual, sum_tolerance(1, 4, 1));
  } else {
    trial.input("residual", shape, residual);
    trial.output("sum", shape, sum_tolerance(1, 4, 1));
  }
  trial.input("branch", shape, random.normals(shape));
  add_norm_parameters(trial, random, hidden, is_rms);
  // The sum as it was stored is what is normalised: up to 3 deviations, each times a gamma of up to 5.
  trial.output("y", shape, sum_tolerance(hidden, 24, 1).carrying(15));
  if (!is_rms) trial.output("mean", {rows}, sum_tolerance(hidden, 4, 8).carrying(2), Precision::kAccumulation);
  trial.output("rstd", {rows}, sum_tolerance(hidden, 24).carrying(4), Precision::kAccumulation);
  move_counters(trial, random, dropout);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.residual_add_norm({.add = {.sum = views["sum"],
                                       .residual = views[in_place ? "sum" : "residual"],
                                       .branch = views["branch"],
                                       .dropout = with_counters(dropout, views)},
                               .norm = norm_of(views, views["sum"])});
  };
  return trial;
}

}  // namespace teratron::testing
