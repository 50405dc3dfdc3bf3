#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "plan/least_squares.h"

namespace teratron::plan {
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

}  // namespace

double CostModel::milliseconds(std::int64_t length, std::int64_t context_tokens) const {
  check(!lengths.empty() && length >= 1 && length <= lengths.back(), "the cost model knows slices of this length");
  const auto at = std::lower_bound(lengths.begin(), lengths.end(), length);
  const auto right = static_cast<std::size_t>(at - lengths.begin());
  double time = without_context[right];
  if (right > 0) {
    const std::size_t left = right - 1;
    const double part =
        static_cast<double>(length - lengths[left]) / static_cast<double>(lengths[right] - lengths[left]);
    time = without_context[left] + part * (without_context[right] - without_context[left]);
  }
  if (context_tokens > 0) {
    const std::array<double, 4> terms = terms_of(length, context_tokens);
    for (std::size_t i = 0; i < terms.size(); ++i) time += context[i] * terms[i];
  }
  return std::max(time, 0.0);
}

CostTable CostModel::table(std::int64_t tokens, std::int64_t granularity) const {
  return {tokens, granularity,
          [this](std::int64_t length, std::int64_t context_tokens) { return milliseconds(length, context_tokens); }};
}

CostModel fit_cost_model(std::span<const CostPoint> points) {
  require_usable(points);
  std::map<std::int64_t, std::vector<double>> alone;
  for (const CostPoint& point : points) {
    if (point.context == 0) alone[point.length].push_back(point.milliseconds);
  }
  CostModel model;
  for (const auto& [length, times] : alone) {
    double sum = 0;
    for (const double time : times) sum += time;
    model.lengths.push_back(length);
    model.without_context.push_back(sum / static_cast<double>(times.size()));
  }
  std::vector<std::vector<double>> rows;
  std::vector<double> rest;
  for (const CostPoint& point : points) {
    if (point.context == 0) continue;
    if (model.lengths.empty() || point.length > model.lengths.back()) {
      throw_user_error("a slice of {} tokens was measured with context, but none as long without", point.length);
    }
    // Divided by the time measured, so that the square is of the relative error.
    rows.emplace_back();
    for (const double term : terms_of(point.length, point.context)) rows.back().push_back(term / point.milliseconds);
    rest.push_back(1 - model.milliseconds(point.length, 0) / point.milliseconds);
  }
  const std::optional<std::vector<double>> context = least_squares(rows, rest);
  if (!context) {
    throw_user_error(
        "{} measurements with context do not tell what context costs; measure two lengths or more, each with two "
        "contexts or more",
        rows.size());
  }
  std::copy(context->begin(), context->end(), model.context.begin());
  return model;
}

RelativeError relative_error(const CostModel& model, std::span<const CostPoint> points) {
  check(!points.empty(), "an error is of one point at least");
  RelativeError error;
  for (const CostPoint& point : points) {
    const double off =
        std::abs(model.milliseconds(point.length, point.context) - point.milliseconds) / point.milliseconds;
    error.mean += off / static_cast<double>(points.size());
    error.worst = std::max(error.worst, off);
  }
  return error;
}

}  // namespace teratron::plan
