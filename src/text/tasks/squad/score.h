// SQuAD's official scores: exact match and F1 of words, each against the best of a question's answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tasks/squad/format.h"

namespace teratron::squad {

// str.lower(): Unicode's full lower case. "\u0130" becomes two characters, and a capital sigma at the end of a word the
// final one: a cased letter comes before it and none after it, ignoring marks and apostrophes.
std::u32string python_lower(std::u32string_view text);

// White space of str.split(): Unicode's, and the separators U+001C to U+001F.
bool is_python_space(char32_t code);

// The class \w of patterns: letters, numbers and the underscore; no marks.
bool is_python_word(char32_t code);

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
