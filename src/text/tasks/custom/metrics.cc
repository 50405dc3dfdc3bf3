#include "tasks/custom/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace teratron::custom {
namespace {

double pearson(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::reduce(x.begin(), x.end()) / n, mean_y = std::reduce(y.begin(), y.end()) / n;
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  const double product = std::sqrt(xx) * std::sqrt(yy);
  return product > 0 ? std::clamp(xy / product, -1.0, 1.0) : 0;
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> all(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) all[order[i]] = static_cast<double>(begin + end + 1) / 2;
    begin = end;
  }
  return all;
}

}  // namespace

LabelMetrics label_metrics(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted,
                           std::int64_t count) {
  check_equal(labels.size(), predicted.size(), "predicted labels");
  check(!labels.empty(), "labels to score by");
  const auto classes = static_cast<std::size_t>(count);
  std::vector<double> labelled(classes), said(classes), both(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    ++labelled.at(label);
    ++said.at(static_cast<std::size_t>(predicted[i]));
    if (labels[i] == predicted[i]) ++both[label];
  }
  const auto n = static_cast<double>(labels.size());
  double right = 0, f1 = 0, occurring = 0, products = 0, squares_labelled = 0, squares_said = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    right += both[c];
    products += labelled[c] * said[c];
    squares_labelled += labelled[c] * labelled[c];
    squares_said += said[c] * said[c];
    if (labelled[c] + said[c] == 0) continue;
    ++occurring;
    f1 += 2 * both[c] / (labelled[c] + said[c]);
  }
  const double spread = (n * n - squares_labelled) * (n * n - squares_said);
  return {.accuracy = right / n,
          .f1_macro = f1 / occurring,
          .matthews = spread > 0 ? (right * n - products) / std::sqrt(spread) : 0};
}

NumberMetrics number_metrics(std::span<const double> labels, std::span<const double> predicted) {
  check_equal(labels.size(), predicted.size(), "predicted numbers");
  check(!labels.empty(), "numbers to score by");
  double squares = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) squares += (predicted[i] - labels[i]) * (predicted[i] - labels[i]);
  return {.pearson = pearson(labels, predicted),
          .spearman = pearson(ranks(labels), ranks(predicted)),
          .mean_squared_error = squares / static_cast<double>(labels.size())};
}

}  // namespace teratron::custom
