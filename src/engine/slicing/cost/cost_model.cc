#include "slicing/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/median.h"

namespace teratron::slicing {
namespace {

std::array<double, 4> terms_of(std::int64_t length, std::int64_t context) {
  const auto l = static_cast<double>(length), c = static_cast<double>(context);
  return {1, l, c, l * c};
}

void require_usable(std::span<const CostPoint> points) {
  for (const CostPoint& point : points) {
    if (point.length >= 1 && point.context >= 0 && std::isfinite(point.milliseconds) && point.milliseconds > 0)
      continue;
    throw_user_error("a slice of {} tokens after {} tokens is said to take {} ms, which no slice does", point.length,
                     point.context, point.milliseconds);
  }
}

// The two measured lengths around a length. Interpolation takes 1 - part of the left one's time and part of the
// right's.
struct Between {
  std::size_t left = 0, right = 0;
  double part = 0;
};

Between place_of(const std::vector<std::int64_t>& lengths, std::int64_t length) {
  check(!lengths.empty() && length >= 1 && length <= lengths.back(), "the cost model knows slices of this length");
  const auto at = std::lower_bound(lengths.begin(), lengths.end(), length);
  const auto right = static_cast<std::size_t>(at - lengths.begin());
  if (right == 0) return {};
  const std::size_t left = right - 1;
  return {left, right,
          static_cast<double>(length - lengths[left]) / static_cast<double>(lengths[right] - lengths[left])};
}

// Distance of l^2 / 2 below its chord between the two lengths.
double sag(const std::vector<std::int64_t>& lengths, const Between& at) {
  const auto width = static_cast<double>(lengths[at.right] - lengths[at.left]);
  return at.part * (1 - at.part) * width * width / 2;
}

// t(l, 0) of a slice shorter than any measured.
double below_first(const std::vector<std::int64_t>& lengths, const std::vector<double>& times, std::int64_t length) {
  const auto l = static_cast<double>(length), first = static_cast<double>(lengths[0]);
  const double rate = (times[1] - times[0]) / (static_cast<double>(lengths[1]) - first);
  return std::clamp(times[0] - rate * (first - l), times[0] * l / first, times[0]);
}

using Row = std::vector<double>;

// t(l, c) as factors of the unknowns: t(l, 0) of each length, then a0 .. a3.
Row row_of(const std::vector<std::int64_t>& lengths, std::int64_t length, std::int64_t context) {
  Row row(lengths.size() + 4);
  const Between at = place_of(lengths, length);
  row[at.left] += 1 - at.part;
  row[at.right] += at.part;
  if (context > 0) {
    const std::array<double, 4> terms = terms_of(length, context);
    std::copy(terms.begin(), terms.end(), row.end() - 4);
  }
  row.back() -= sag(lengths, at);
  return row;
}

std::vector<std::int64_t> lengths_without_context(std::span<const CostPoint> points) {
  std::set<std::int64_t> lengths;
  for (const CostPoint& point : points) {
    if (point.context == 0) lengths.insert(point.length);
  }
  for (const CostPoint& point : points) {
    if (!lengths.empty() && point.length <= *lengths.rbegin()) continue;
    throw_user_error("a slice of {} tokens was measured with context, but none as long without", point.length);
  }
  return {lengths.begin(), lengths.end()};
}

// Least squares in which point i counts weights[i] times.
std::optional<CostModel> fit(const std::vector<std::int64_t>& lengths, std::span<const CostPoint> points,
                             std::span<const double> weights) {
  std::vector<Row> rows;
  std::vector<double> ones;
  for (std::size_t i = 0; i < points.size(); ++i) {
    // Divided by the time measured, so that the square is of the relative error.
    const double weight = std::sqrt(weights[i]);
    rows.push_back(row_of(lengths, points[i].length, points[i].context));
    for (double& factor : rows.back()) factor *= weight / points[i].milliseconds;
    ones.push_back(weight);
  }
  const std::optional<std::vector<double>> x = least_squares(rows, ones);
  if (!x) return std::nullopt;
  CostModel model{.lengths = lengths, .without_context = {x->begin(), x->end() - 4}};
  std::copy(x->end() - 4, x->end(), model.context.begin());
  const bool possible = std::ranges::all_of(model.without_context, [](double time) { return time > 0; });
  return possible ? std::optional(model) : std::nullopt;
}

// The model whose times without context are the medians of those measured. A fit to noisy times can have some below 0.
std::optional<CostModel> fit_context_alone(const std::vector<std::int64_t>& lengths,
                                           std::span<const CostPoint> points) {
  CostModel model{.lengths = lengths};
  for (const std::int64_t length : lengths) {
    std::vector<double> times;
    for (const CostPoint& point : points) {
      if (point.context == 0 && point.length == length) times.push_back(point.milliseconds);
    }
    model.without_context.push_back(median(std::move(times)));
  }
  std::vector<Row> rows;
  std::vector<double> rest;  // of the times, relative
  for (const CostPoint& point : points) {
    if (point.context == 0) continue;
    const Row row = row_of(lengths, point.length, point.context);
    rest.push_back(1 - model.milliseconds(point.length, 0) / point.milliseconds);
    rows.emplace_back(row.end() - 4, row.end());
    for (double& factor : rows.back()) factor /= point.milliseconds;
  }
  const std::optional<std::vector<double>> x = least_squares(rows, rest);
  if (!x) return std::nullopt;
  std::ranges::copy(*x, model.context.begin());
  return model;
}

double relative_error(const CostModel& model, const CostPoint& point) {
  return std::abs(model.milliseconds(point.length, point.context) - point.milliseconds) / point.milliseconds;
}

// The model with the least sum of errors, not of their squares, by iteratively reweighted least squares. An outlier
// then counts no more than other points.
CostModel fit_by_absolute_errors(CostModel model, std::span<const CostPoint> points) {
  constexpr int kRounds = 30;
  constexpr double kLeast = 1e-4;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> weights;
    for (const CostPoint& point : points) weights.push_back(1 / std::max(kLeast, relative_error(model, point)));
    const std::optional<CostModel> better = fit(model.lengths, points, weights);
    if (!better) break;
    model = *better;
  }
  return model;
}

// Points without outliers: those that the model predicts about as well as most.
std::vector<CostPoint> usual(const CostModel& model, std::span<const CostPoint> points) {
  constexpr double kFar = 4, kOfNormal = 1.4826;  // the standard deviation over the median of what is off
  constexpr double kNear = 0.005;                 // never an outlier
  std::vector<double> errors;
  for (const CostPoint& point : points) errors.push_back(relative_error(model, point));
  const double far = std::max(kNear, kFar * kOfNormal * median(std::move(errors)));
  std::vector<CostPoint> kept;
  std::ranges::copy_if(points, std::back_inserter(kept),
                       [&](const CostPoint& point) { return relative_error(model, point) <= far; });
  return kept;
}

}  // namespace

double CostModel::milliseconds(std::int64_t length, std::int64_t context_tokens) const {
  const Between at = place_of(lengths, length);
  double time = (1 - at.part) * without_context[at.left] + at.part * without_context[at.right] -
                context.back() * sag(lengths, at);
  if (length < lengths.front() && lengths.size() > 1) time = below_first(lengths, without_context, length);
  if (context_tokens > 0) {
    const std::array<double, 4> terms = terms_of(length, context_tokens);
    for (std::size_t i = 0; i < terms.size(); ++i) time += context[i] * terms[i];
  }
  return std::max(time, 0.0);
}

CostModel CostModel::times(double factor) const {
  CostModel scaled = *this;
  for (double& time : scaled.without_context) time *= factor;
  for (double& coefficient : scaled.context) coefficient *= factor;
  return scaled;
}

CostModel fit_cost_model(std::span<const CostPoint> points) {
  require_usable(points);
  const std::vector<std::int64_t> lengths = lengths_without_context(points);
  std::optional<CostModel> first = fit(lengths, points, std::vector<double>(points.size(), 1.0));
  if (!first) first = fit_context_alone(lengths, points);
  if (!first) {
    const auto with_context = std::ranges::count_if(points, [](const CostPoint& point) { return point.context > 0; });
    throw_user_error(
        "{} measurements with context do not determine what context costs; measure two lengths or more, each with two "
        "contexts or more",
        with_context);
  }
  const std::vector<CostPoint> kept = usual(fit_by_absolute_errors(*first, points), points);
  return fit(lengths, kept, std::vector<double>(kept.size(), 1.0)).value_or(*first);
}

LinearTime fit_linear_time(std::span<const CostPoint> points) {
  check(!points.empty(), "a time is fitted to one point at least");
  std::vector<Row> rows;
  std::vector<double> per_token;
  double sum = 0;
  for (const CostPoint& point : points) {
    const auto length = static_cast<double>(point.length);
    rows.push_back({1 / length, 1});
    per_token.push_back(point.milliseconds / length);
    sum += per_token.back();
  }
  if (const std::optional<std::vector<double>> x = least_squares(rows, per_token)) {
    return {.fixed = (*x)[0], .per_token = (*x)[1]};
  }
  return {.per_token = sum / static_cast<double>(points.size())};
}

RelativeError relative_error(const CostModel& model, std::span<const CostPoint> points) {
  check(!points.empty(), "an error is of one point at least");
  RelativeError error;
  for (const CostPoint& point : points) {
    const double off = relative_error(model, point);
    error.mean += off / static_cast<double>(points.size());
    error.worst = std::max(error.worst, off);
  }
  return error;
}

}  // namespace teratron::slicing
