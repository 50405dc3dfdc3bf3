#include "tasks/race/score.h"

#include "base/counted.h"
#include "base/error.h"

namespace teratron::race {
namespace {

Scores score_of(const Article& article, const Predictions& predictions) {
  Scores scores{.questions = std::ssize(article.questions)};
  const auto found = predictions.find(article.id);
  if (found == predictions.end()) {
    scores.without_prediction = scores.questions;
    return scores;
  }
  if (found->second.size() != article.questions.size()) {
    throw_user_error("the article '{}' has {} and {}", article.id, counted(std::ssize(article.questions), "question"),
                     counted(std::ssize(found->second), "prediction"));
  }
  for (std::size_t i = 0; i < article.questions.size(); ++i) {
    if (found->second[i] == article.questions[i].answer) ++scores.right;
  }
  return scores;
}

void add(Scores& sum, const Scores& scores) {
  sum.questions += scores.questions;
  sum.right += scores.right;
  sum.without_prediction += scores.without_prediction;
}

}  // namespace

ScoresByLevel score(const Dataset& dataset, const Predictions& predictions) {
  ScoresByLevel scores;
  for (const Article& article : dataset) {
    const Scores one = score_of(article, predictions);
    add(scores.all, one);
    if (article.level) add(*article.level == Level::kMiddle ? scores.middle : scores.high, one);
  }
  for (Scores* each : {&scores.middle, &scores.high, &scores.all}) {
    if (each->questions == 0) continue;
    each->accuracy = 100.0 * static_cast<double>(each->right) / static_cast<double>(each->questions);
  }
  return scores;
}

}  // namespace teratron::race
