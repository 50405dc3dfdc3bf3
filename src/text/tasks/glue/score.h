// GLUE's official scores of MNLI and QQP: accuracy, and for QQP F1 of the duplicates.
#pragma once

#include <cstdint>

#include "tasks/glue/format.h"

namespace teratron::glue {

struct Scores {
  std::int64_t pairs = 0, right = 0, without_prediction = 0;
  double accuracy = 0;  // in per cent
  double f1 = 0;        // in per cent, of the pairs labelled 1 (QQP); 0 if none is labelled or predicted 1
};

// A pair without a prediction is wrong, and not a predicted duplicate. Predictions of skipped rows are ignored.
// UserError: pairs without labels; a prediction of a row that the file lacks.
Scores score(const Dataset& dataset, const Predictions& predictions);

}  // namespace teratron::glue
