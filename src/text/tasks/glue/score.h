// GLUE's official scores of MNLI and QQP: accuracy, and for QQP F1 of the duplicates.
#pragma once

#include <cstdint>

#include "tasks/glue/format.h"

namespace teratron::glue {

struct Scores {
  std::int64_t pairs = 0, right = 0, without_prediction = 0;
  double accuracy = 0;  // in per cent
  double f1 = 0;        // in per cent, of the pairs labelled 1 (QQP); 0 where none is that and none is taken for that
};

// A pair without a prediction is wrong, and not taken for a duplicate. Predictions of rows that were skipped are not
// looked at. UserError: pairs without labels; a prediction of a row that the file does not have.
Scores score(const Dataset& dataset, const Predictions& predictions);

}  // namespace teratron::glue
