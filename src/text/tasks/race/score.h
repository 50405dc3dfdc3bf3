// RACE's official score: the accuracy over questions, of middle schools (RACE-M), high schools (RACE-H) and all.
#pragma once

#include <cstdint>

#include "tasks/race/format.h"

namespace teratron::race {

struct Scores {
  std::int64_t questions = 0, right = 0, without_prediction = 0;
  double accuracy = 0;  // in per cent; 0 if there are no questions
};

struct ScoresByLevel {
  Scores middle, high, all;  // all: with articles of unknown level
};

// Questions of an article without predictions are wrong. Predictions of other articles are ignored. UserError: an
// article whose numbers of predictions and questions differ.
ScoresByLevel score(const Dataset& dataset, const Predictions& predictions);

}  // namespace teratron::race
