#include "ops/trials/operations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace teratron::testing {
namespace {

struct Sizes {
  std::int64_t rows, columns, valid_columns, vocab_begin;
  Values lengths = {};  // of the sequences that the rows are of; empty: without them
  explicit Sizes(Random& random)
      : rows(some_rows(random)),
        columns(random.one_of<std::int64_t>({1, 2, 3, 37, 64, 100, 513, 1031, 8320})),
        valid_columns(columns),
        vocab_begin(random.one_of<std::int64_t>({0, 11})) {
    if (random.coin()) valid_columns = std::max<std::int64_t>(0, columns - random.below(40));
    if (rows > 0 && random.coin()) add_lengths(random);
  }
  // One row of every sequence, two, or all of one; lengths of one, all, beyond what is valid, and in between.
  void add_lengths(Random& random) {
    const std::int64_t each = random.one_of<std::int64_t>({1, 2, rows});
    if (rows % each != 0) return;
    for (std::int64_t b = 0; b < rows / each; ++b) {
      const std::int64_t between = 1 + random.below(columns);
      lengths.push_back(static_cast<double>(random.one_of<std::int64_t>({1, columns, between, between})));
    }
  }
  std::int64_t valid_of(std::int64_t row) const {
    if (lengths.empty()) return valid_columns;
    const std::int64_t each = rows / static_cast<std::int64_t>(lengths.size());
    return std::min(valid_columns, static_cast<std::int64_t>(lengths[static_cast<std::size_t>(row / each)]));
  }
  // Targets here, in the other parts of a split vocabulary, and the -1 of an ignored row.
  Values targets(Random& random) const { return random.integers({rows}, -1, vocab_begin + valid_columns + 5); }
  void add_to(Trial& trial) const {
    if (!lengths.empty()) trial.ids("lengths", {static_cast<std::int64_t>(lengths.size())}, lengths);
  }
  std::string text() const {
    return fmt::format("T={} V={} valid={} vocab_begin={} lengths={}", rows, columns, valid_columns, vocab_begin,
                       fmt::join(lengths, ","));
  }
};

// Where lengths say so, padding is NaN: it is not read.
Values logits_of(const Sizes& sizes, Random& random) {
  Values logits = random.normals({sizes.rows, sizes.columns}, 0, 3);
  if (sizes.lengths.empty()) return logits;
  for (std::int64_t t = 0; t < sizes.rows; ++t) {
    const auto row = logits.begin() + t * sizes.columns;
    std::fill(row + sizes.valid_of(t), row + sizes.columns, std::numeric_limits<double>::quiet_NaN());
  }
  return logits;
}

struct Statistics {
  Values max, sum;
};

// Statistics of the valid columns, and of one more outside of this part so that there is something to normalise by.
Statistics statistics_of(const Values& logits, const Sizes& sizes) {
  Statistics statistics;
  for (std::int64_t t = 0; t < sizes.rows; ++t) {
    const auto row = logits.begin() + t * sizes.columns;
    double max = 1, sum = 0;
    for (std::int64_t c = 0; c < sizes.valid_of(t); ++c) max = std::max(max, row[c]);
    for (std::int64_t c = 0; c < sizes.valid_of(t); ++c) sum += std::exp(row[c] - max);
    statistics.max.push_back(max);
    statistics.sum.push_back(sum + std::exp(1 - max));
  }
  return statistics;
}

}  // namespace

Trial cross_entropy_partials_trial(Random& random) {
  const Sizes sizes(random);
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  const Shape rows{sizes.rows}, logits{sizes.rows, sizes.columns};
  trial.input("logits", logits, logits_of(sizes, random));
  trial.ids("targets", rows, sizes.targets(random));
  sizes.add_to(trial);
  trial.output("max", rows, {}, Precision::kAccumulation);
  trial.output("sum", rows, sum_tolerance(sizes.columns, 24), Precision::kAccumulation);
  trial.output("target_logit", rows, {}, Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.cross_entropy_partials({.max = views["max"],
                                    .sum = views["sum"],
                                    .target_logit = views["target_logit"],
                                    .logits = views["logits"],
                                    .targets = views["targets"],
                                    .lengths = views["lengths"],
                                    .vocab_begin = sizes.vocab_begin,
                                    .valid_columns = sizes.valid_columns});
  };
  return trial;
}

Trial cross_entropy_rescale_trial(Random& random) {
  const std::int64_t rows = some_rows(random);
  Trial trial{.sizes = fmt::format("T={}", rows), .arguments = {}, .run = {}};
  Values sum = random.normals({rows}), own = random.normals({rows}), max = own;
  for (double& value : sum) value = 1 + std::abs(value) * 50;
  for (std::size_t t = 0; t < max.size(); ++t) {
    if (t % 3 != 0) max[t] += std::abs(max[t]);
    if (t % 7 == 5) own[t] = -std::numeric_limits<double>::infinity(), sum[t] = 0;
  }
  trial.in_out("sum", {rows}, sum, sum_tolerance(1, 32, 50), Precision::kAccumulation);
  trial.input("own_max", {rows}, own, Precision::kAccumulation);
  trial.input("max", {rows}, max, Precision::kAccumulation);
  trial.run = [](Backend& backend, const Views& views) {
    backend.cross_entropy_rescale({.sum = views["sum"], .own_max = views["own_max"], .max = views["max"]});
  };
  return trial;
}

Trial cross_entropy_loss_trial(Random& random) {
  const std::int64_t rows = some_rows(random);
  Trial trial{.sizes = fmt::format("T={}", rows), .arguments = {}, .run = {}};
  Values sum = random.normals({rows});
  for (double& value : sum) value = 1 + std::abs(value) * 50;
  trial.input("max", {rows}, random.normals({rows}), Precision::kAccumulation);
  trial.input("sum", {rows}, sum, Precision::kAccumulation);
  trial.input("target_logit", {rows}, random.normals({rows}), Precision::kAccumulation);
  trial.output("loss", {rows}, sum_tolerance(1, 8, 1), Precision::kAccumulation);
  trial.run = [](Backend& backend, const Views& views) {
    backend.cross_entropy_loss(
        {.loss = views["loss"], .max = views["max"], .sum = views["sum"], .target_logit = views["target_logit"]});
  };
  return trial;
}

Trial weighted_sum_trial(Random& random) {
  const std::int64_t rows = some_rows(random) * random.one_of<std::int64_t>({1, 1, 50});
  Trial trial{.sizes = fmt::format("T={}", rows), .arguments = {}, .run = {}};
  // Products of fp32 are exact in f64, so that only the order of the sum is a back end's own.
  const Tolerance order = {.relative = 0x1p-53 * static_cast<double>(rows + 1),
                           .floor = std::sqrt(static_cast<double>(rows))};
  const std::optional<double> count_below = random.one_of({false, true}) ? std::optional(0.25) : std::nullopt;
  trial.in_out("total", {1}, random.normals({1}), order, Precision::kDouble);
  trial.input("value", {rows}, random.normals({rows}), Precision::kAccumulation);
  trial.input("weight", {rows}, random.normals({rows}), Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.weighted_sum(
        {.total = views["total"], .value = views["value"], .weight = views["weight"], .count_below = count_below});
  };
  return trial;
}

Trial cross_entropy_backward_trial(Random& random) {
  const Sizes sizes(random);
  Trial trial{.sizes = sizes.text(), .arguments = {}, .run = {}};
  const Shape rows{sizes.rows}, shape{sizes.rows, sizes.columns};
  const Values logits = logits_of(sizes, random);
  const Statistics statistics = statistics_of(logits, sizes);
  trial.in_out("logits", shape, logits, sum_tolerance(1, 32, 1));
  trial.input("max", rows, statistics.max, Precision::kAccumulation);
  trial.input("sum", rows, statistics.sum, Precision::kAccumulation);
  trial.ids("targets", rows, sizes.targets(random));
  sizes.add_to(trial);
  trial.input("weight", rows, random.normals(rows), Precision::kAccumulation);
  trial.run = [=](Backend& backend, const Views& views) {
    backend.cross_entropy_backward({.logits = views["logits"],
                                    .max = views["max"],
                                    .sum = views["sum"],
                                    .targets = views["targets"],
                                    .weight = views["weight"],
                                    .lengths = views["lengths"],
                                    .vocab_begin = sizes.vocab_begin,
                                    .valid_columns = sizes.valid_columns});
  };
  return trial;
}

}  // namespace teratron::testing
