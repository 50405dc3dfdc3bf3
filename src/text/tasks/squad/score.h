// SQuAD's official scores: exact match and F1 of words, each against the best of a question's answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tasks/squad/format.h"

namespace teratron::squad {

// Normalizes as the official script: lower case, without ASCII punctuation and the words a, an and the, single spaces
// between words; characters are classified as in Python.
std::string normalized(std::string_view answer);

// F1 of normalized texts: the harmonic mean of precision and recall of the prediction's words, with repetitions. 0 if
// they share no word; if neither has a word, 0 in version 1.1 and 1 in 2.0.
double f1(std::string_view prediction, std::string_view answer, Version version);

struct Scores {
  std::int64_t questions = 0, without_prediction = 0;
  double exact_match = 0, f1 = 0;  // in per cent
};

struct ScoresByAnswer {
  Scores all, with_answer, without_answer;
};

// A question without a prediction scores 0. If there is no answer, only the empty prediction is right (2.0); otherwise
// answers with words count. Predictions of other questions are ignored. UserError: a question without a label.
ScoresByAnswer score(const Dataset& dataset, const std::map<std::string, std::string>& predictions, Version version);

}  // namespace teratron::squad
