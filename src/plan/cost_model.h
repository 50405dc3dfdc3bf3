// What a slice of l tokens after c tokens of context takes in one stage: t(l, c) = t(l, 0) + t_ctx(l, c) (TeraPipe,
// arXiv 2102.07988, section 3.3). The first term is measured for every l of a granularity; the second, which is
// attention to keys and values of earlier slices, is a0 + a1 l + a2 c + a3 l c, fitted to a few measurements.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/cost_table.h"

namespace teratron::plan {

struct CostPoint {
  std::int64_t length = 0, context = 0;
  double milliseconds = 0;
};

struct CostModel {
  std::vector<std::int64_t> lengths;    // ascending
  std::vector<double> without_context;  // t(l, 0) of each, in milliseconds
  std::array<double, 4> context = {};   // a0 .. a3

  // Between measured lengths t(l, 0) is a straight line; below the first it is the first's, which is mostly what a
  // slice costs however short it is. Never negative. InternalError for slices longer than any measured.
  double milliseconds(std::int64_t length, std::int64_t context_tokens) const;

  CostTable table(std::int64_t tokens, std::int64_t granularity) const;

  bool operator==(const CostModel&) const = default;
};

// Points without context become t(l, 0) (of one length, their mean); those with context are fitted, by least squares of
// the relative error of t(l, c), which is what a plan suffers from. UserError where points are too few to tell the four
// coefficients: two lengths with two contexts each at least.
CostModel fit_cost_model(std::span<const CostPoint> points);

struct RelativeError {
  double mean = 0, worst = 0;  // 0.02 is 2 %
  bool operator==(const RelativeError&) const = default;
};

// On points that the model has not seen. At least one.
RelativeError relative_error(const CostModel& model, std::span<const CostPoint> points);

}  // namespace teratron::plan
