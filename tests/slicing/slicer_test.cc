// Slicers against every slicing there is, on tables of any shape.
#include "slicing/slicer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "base/philox.h"
#include "pipeline/generators.h"
#include "pipeline/timing/simulate.h"

namespace teratron::testing {
namespace {

using namespace slicing;

constexpr double kRounding = 1e-9;

int between(RandomSequence& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// Tables of all kinds: no order at all, a few values only (ties), and what slices really cost.
CostTable random_table(RandomSequence& random, std::int64_t tokens, std::int64_t granularity) {
  const int kind = between(random, 0, 2);
  const double floor = random.uniform(), slope = random.uniform(), attention = random.uniform() / 10;
  return {tokens, granularity, [&, kind](std::int64_t length, std::int64_t context) {
            if (kind == 0) return random.uniform() * static_cast<double>(length);
            if (kind == 1) return static_cast<double>(between(random, 0, 3));
            const auto l = static_cast<double>(length);
            return floor + slope * l + attention * l * (static_cast<double>(context) + l / 2);
          }};
}

// Both tables have the same boundaries, which divide the sequence evenly.
CostTable sum_of(const CostTable& a, const CostTable& b) {
  return {a.tokens(), a.tokens() / static_cast<std::int64_t>(a.intervals()),
          [&](std::int64_t length, std::int64_t context) {
            const auto step = a.tokens() / static_cast<std::int64_t>(a.intervals());
            const auto begin = static_cast<std::size_t>(context / step);
            const auto end = static_cast<std::size_t>((context + length) / step);
            return a.of(begin, end) + b.of(begin, end);
          }};
}

using Lengths = std::vector<std::int64_t>;

// Calls use(slice lengths) for every way to cut the table's sequence.
void for_each_slicing(const CostTable& table, const std::function<void(const Lengths&)>& use) {
  const std::size_t cuts = table.intervals() - 1;
  for (std::uint32_t chosen = 0; chosen < 1U << cuts; ++chosen) {
    std::vector<std::size_t> boundaries = {0};
    for (std::size_t cut = 0; cut < cuts; ++cut) {
      if ((chosen >> cut & 1U) != 0) boundaries.push_back(cut + 1);
    }
    boundaries.push_back(table.intervals());
    use(table.lengths(boundaries));
  }
}

std::vector<double> costs_of(const CostTable& table, const Lengths& lengths) {
  std::vector<double> costs;
  std::int64_t token = 0;
  std::size_t begin = 0;
  for (const std::int64_t length : lengths) {
    std::size_t end = begin;
    token += length;
    while (table.boundary(end) < token) ++end;
    EXPECT_EQ(table.boundary(end), token) << "slices end on the grid";
    costs.push_back(table.of(begin, end));
    begin = end;
  }
  EXPECT_EQ(token, table.tokens());
  return costs;
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double most_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

SlicerOptions random_options(RandomSequence& random) {
  return {.stages = between(random, 1, 12),
          .micro_batches = between(random, 1, 3),
          .epsilon = random.below(3) == 0 ? 0 : random.uniform()};
}

double time_of(double sum, double longest, const SlicerOptions& options) {
  return options.micro_batches * sum + (options.stages - 1) * longest;
}

TEST(Slicer, IsWithinEpsilonOfTheBestOfAllSlicingsWhateverTheTable) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 400; ++trial) {
    const std::int64_t granularity = between(random, 1, 9);
    const CostTable table = random_table(random, between(random, 1, 11 * static_cast<int>(granularity)), granularity);
    const SlicerOptions options = random_options(random);
    const Slicing found = best_slicing(table, options);
    const std::vector<double> costs = costs_of(table, found.lengths);
    ASSERT_NEAR(found.sum, sum_of(costs), kRounding);
    ASSERT_EQ(found.longest, most_of(costs));
    ASSERT_NEAR(found.time, time_of(found.sum, found.longest, options), kRounding);
    double best = std::numeric_limits<double>::infinity();
    for_each_slicing(table, [&](const Lengths& lengths) {
      const std::vector<double> all = costs_of(table, lengths);
      best = std::min(best, time_of(sum_of(all), most_of(all), options));
    });
    ASSERT_GE(found.time, best - kRounding);
    ASSERT_LE(found.time, best + (options.stages - 1) * options.epsilon + kRounding);
  }
}

// Every way to make up a batch of parts, and every way to slice each of them.
double best_of_all_joint(std::span<const CostTable> tables, std::size_t batch, const SlicerOptions& options) {
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(std::size_t, std::size_t, double, double)> fill = [&](std::size_t left, std::size_t most,
                                                                                 double sum, double longest) {
    if (left == 0) best = std::min(best, time_of(sum, longest, options));
    for (std::size_t part = 1; part <= std::min(left, most); ++part) {
      for_each_slicing(tables[part - 1], [&](const Lengths& lengths) {
        const std::vector<double> costs = costs_of(tables[part - 1], lengths);
        fill(left - part, part, sum + sum_of(costs), std::max(longest, most_of(costs)));
      });
    }
  };
  fill(batch, tables.size(), 0, 0);
  return best;
}

TEST(Slicer, JointSlicesAreWithinEpsilonOfTheBestOfAllBatchAndTokenSlices) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 150; ++trial) {
    const std::int64_t tokens = between(random, 1, 4);
    const int most = between(random, 1, 4), batch = between(random, most, 4);  // in a part, and in all
    std::vector<CostTable> tables;
    // More sequences cost more, or parts of several sizes would never be best.
    tables.push_back(random_table(random, tokens, 1));
    while (tables.size() < static_cast<std::size_t>(most)) {
      tables.push_back(sum_of(tables.back(), random_table(random, tokens, 1)));
    }
    const SlicerOptions options = random_options(random);
    const JointSlicing found = best_joint_slicing(tables, options, static_cast<std::size_t>(batch));
    double sum = 0, longest = 0;
    int sequences = 0;
    for (const JointSlicing::Part& part : found.parts) {
      const std::vector<double> costs = costs_of(tables[static_cast<std::size_t>(part.sequences) - 1], part.lengths);
      sum += sum_of(costs);
      longest = std::max(longest, most_of(costs));
      sequences += part.sequences;
    }
    ASSERT_EQ(sequences, batch);
    ASSERT_NEAR(found.time, time_of(sum, longest, options), kRounding);
    const double best = best_of_all_joint(tables, static_cast<std::size_t>(batch), options);
    ASSERT_GE(found.time, best - kRounding);
    ASSERT_LE(found.time, best + (options.stages - 1) * options.epsilon + kRounding);
  }
}

// Costs of slices when attention matters: a floor, a cost by the token, and one for every token attended to.
CostTable attention_table(std::int64_t tokens, double share) {
  return {tokens, tokens / 64, [=](std::int64_t length, std::int64_t context) {
            const auto l = static_cast<double>(length), c = static_cast<double>(context);
            return share * (0.05 + l / 64 + l * (c + l / 2) / 40000);
          }};
}

TEST(Slicer, WhereContextCostsLaterSlicesAreShorter) {
  const Slicing found = best_slicing(attention_table(2048, 3), {.stages = 8, .epsilon = 0});
  ASSERT_GT(found.lengths.size(), 4U);
  EXPECT_GT(found.lengths.front(), found.lengths.back());
}

TEST(Slicer, PromisesTheTimeThatTeraPipesScheduleTakes) {
  const CostTable forward = attention_table(2048, 1), backward = attention_table(2048, 2);
  const SlicerOptions options{.stages = 6, .micro_batches = 2, .epsilon = 0.01};
  const Slicing found = best_slicing(sum_of(forward, backward), options);
  const std::vector<double> f = costs_of(forward, found.lengths), b = costs_of(backward, found.lengths);
  std::vector<pipeline::PassTimes> slices;
  for (std::size_t s = 0; s < f.size(); ++s) slices.push_back(pipeline::PassTimes::even_parts(f[s], b[s]));
  const auto schedule = pipeline::make_schedule(
      pipeline::ScheduleKind::kTeraPipe,
      {.stages = options.stages, .micro_batches = options.micro_batches, .slices = static_cast<int>(f.size())});
  EXPECT_NEAR(pipeline::simulate(schedule, pipeline::sliced_costs(schedule, slices)).iteration, found.time, kRounding);
}

}  // namespace
}  // namespace teratron::testing
