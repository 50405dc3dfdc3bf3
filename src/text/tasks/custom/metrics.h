// Metrics of predicted labels and numbers, as scikit-learn and SciPy define them.
#pragma once

#include <cstdint>
#include <span>

namespace teratron::custom {

// Shares, but for Matthews' coefficient, which is between -1 and 1.
struct LabelMetrics {
  double accuracy = 0;
  // The mean of F1 over the labels that occur among the true or the predicted ones: f1_score(average="macro").
  double f1_macro = 0;
  // Gorodkin's form for any number of labels (matthews_corrcoef); 0 where all true or all predicted ones are equal.
  double matthews = 0;
};

// labels[i] and predicted[i], from 0 to count - 1, are those of example i. InternalError: there are none, or not as
// many of both.
LabelMetrics label_metrics(std::span<const std::int32_t> labels, std::span<const std::int32_t> predicted,
                           std::int64_t count);

struct NumberMetrics {
  // Correlations, between -1 and 1; 0 where all numbers of a side are equal, which leaves them undefined.
  double pearson = 0;
  double spearman = 0;  // Pearson's of the ranks; equal numbers share the mean of theirs
  double mean_squared_error = 0;
};

// InternalError: as label_metrics.
NumberMetrics number_metrics(std::span<const double> labels, std::span<const double> predicted);

}  // namespace teratron::custom
