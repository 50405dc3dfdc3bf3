// Time of a slice of l tokens after c tokens of context in one stage: t(l, c) = t(l, 0) + t_ctx(l, c) (TeraPipe,
// arXiv 2102.07988, section 3.3). The first term is measured for some l. The second, attention to keys and values of
// earlier slices, is a0 + a1 l + a2 c + a3 l c, fitted to a few measurements.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace teratron::slicing {

struct CostPoint {
  std::int64_t length = 0, context = 0;
  double milliseconds = 0;
};

struct CostModel {
  std::vector<std::int64_t> lengths;    // ascending
  std::vector<double> without_context;  // t(l, 0) of each length, in milliseconds
  std::array<double, 4> context = {};   // a0 .. a3

  // Between measured lengths t(l, 0) is a straight line plus half of a3 l^2, since a slice's token attends to half of
  // the slice on average. Below the first it goes on as between the first two, but is no less than the first's share by
  // length and no more than the first: a shorter slice does less work, less efficiently. Never negative. InternalError
  // for slices longer than any measured.
  double milliseconds(std::int64_t length, std::int64_t context_tokens) const;

  CostModel times(double factor) const;  // all times multiplied

  bool operator==(const CostModel&) const = default;
};

// Fits t(l, 0) of every length measured without context and the coefficients together, by least squares of the relative
// error of t(l, c). Points off by more than four times the usual error are left out if the others are enough: something
// disturbed them. UserError: too few points for the four coefficients, which need two lengths with two contexts each.
CostModel fit_cost_model(std::span<const CostPoint> points);

struct LinearTime {
  double fixed = 0, per_token = 0;  // milliseconds
  double of(std::int64_t tokens) const { return fixed + per_token * static_cast<double>(tokens); }
  bool operator==(const LinearTime&) const = default;
};

// Least squares of the error per token, without regard to context; times may be negative. Proportional to the tokens if
// all points have one length. At least one point.
LinearTime fit_linear_time(std::span<const CostPoint> points);

struct RelativeError {
  double mean = 0, worst = 0;  // 0.02 is 2 %
  bool operator==(const RelativeError&) const = default;
};

// Error of the model on points that it was not fitted to. At least one.
RelativeError relative_error(const CostModel& model, std::span<const CostPoint> points);

// Least squares: the x that minimises |A x - b|, by Householder reflections. rows[i] is a row of A. Nothing if the
// columns of A are not independent, to 1e-10 of their lengths.
std::optional<std::vector<double>> least_squares(const std::vector<std::vector<double>>& rows,
                                                 std::span<const double> b);

}  // namespace teratron::slicing
