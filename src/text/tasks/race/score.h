// RACE's official score: the accuracy over questions, of middle schools (RACE-M), high schools (RACE-H) and all.
#pragma once

#include <cstdint>

#include "tasks/race/format.h"

namespace teratron::race {

struct Scores {
  std::int64_t questions = 0, right = 0, without_prediction = 0;
  double accuracy = 0;  // in per cent; 0 of no questions
};

struct ScoresByLevel {
  Scores middle, high, all;  // all: also articles that are of neither
};

// The questions of an article without predictions are wrong. Predictions of other articles are not looked at.
// UserError: an article with another number of predictions than questions.
ScoresByLevel score(const Dataset& dataset, const Predictions& predictions);

}  // namespace teratron::race
