#include "tasks/glue/score.h"

#include "base/counted.h"
#include "base/error.h"

namespace teratron::glue {

Scores score(const Dataset& dataset, const Predictions& predictions) {
  if (!predictions.empty() && predictions.rbegin()->first >= dataset.rows) {
    throw_user_error("the row {} is predicted, and the data have {}, counted from 0; are they of one set?",
                     predictions.rbegin()->first, counted(dataset.rows, "row"));
  }
  Scores scores{.pairs = std::ssize(dataset.pairs)};
  std::int64_t both = 0, labelled = 0, predicted = 0;  // duplicates
  for (const Pair& pair : dataset.pairs) {
    if (!pair.label) throw_user_error("the data have no labels to score by; a test set is scored by GLUE's site");
    if (*pair.label == 1) ++labelled;
    const auto found = predictions.find(pair.index);
    if (found == predictions.end()) {
      ++scores.without_prediction;
      continue;
    }
    if (found->second == *pair.label) ++scores.right;
    if (found->second == 1) ++predicted;
    if (found->second == 1 && *pair.label == 1) ++both;
  }
  if (scores.pairs > 0) scores.accuracy = 100.0 * static_cast<double>(scores.right) / static_cast<double>(scores.pairs);
  // The harmonic mean of both / predicted and both / labelled.
  if (labelled + predicted > 0)
    scores.f1 = 200.0 * static_cast<double>(both) / static_cast<double>(labelled + predicted);
  return scores;
}

}  // namespace teratron::glue
