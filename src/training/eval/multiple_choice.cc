#include "eval/multiple_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/utf8.h"

namespace teratron {
namespace {

class ChoiceEncoder {
 public:
  ChoiceEncoder(const Tokenizer& tokenizer, std::int64_t most_tokens)
      : tokenizer_(tokenizer), most_tokens_(most_tokens) {}

  void add(const ChoiceQuestion& question) {
    const std::size_t end = question.context.find_last_not_of(" \t\n\v\f\r") + 1;  // 0 where all is white
    const std::string context = question.context.substr(0, end), white = question.context.substr(end) + " ";
    for (const std::string& choice : question.choices) add(context, white + choice, question.line);
  }
  TokenizedChoices take() && { return std::move(result_); }

 private:
  void add(const std::string& context, const std::string& choice, std::int64_t line) {
    Continuation one = continuation_of(tokenizer_, context, choice);
    one.number = line;
    if (one.scored == 0) throw_user_error("question {}: a choice adds no token to its context", line);
    if (one.scored > most_tokens_) {
      throw_user_error("question {}: a choice has {} tokens, and the model sees {}", line, one.scored, most_tokens_);
    }
    if (const std::int64_t over = std::ssize(one.ids) - 1 - most_tokens_; over > 0) {  // the last token is no input
      one.ids.erase(one.ids.begin(), one.ids.begin() + over);
      ++result_.cut;
    }
    result_.choices.push_back(std::move(one));
  }

  const Tokenizer& tokenizer_;
  std::int64_t most_tokens_;
  TokenizedChoices result_;
};

ChoiceAccuracy accuracy_of(std::int64_t correct, std::int64_t questions) {
  const auto n = static_cast<double>(questions);
  const double share = static_cast<double>(correct) / n;
  return {.share = share, .standard_error = questions > 1 ? std::sqrt(share * (1 - share) / (n - 1)) : 0};
}

}  // namespace

TokenizedChoices tokenize_choices(std::span<const ChoiceQuestion> questions, const Tokenizer& tokenizer,
                                  std::int64_t most_tokens) {
  ChoiceEncoder encoder(tokenizer, most_tokens);
  for (const ChoiceQuestion& question : questions) encoder.add(question);
  return std::move(encoder).take();
}

ChoiceResult judge_choices(std::span<const ChoiceQuestion> questions, std::span<const double> log_probabilities) {
  std::int64_t by_sum = 0, by_character = 0, by_byte = 0;
  const auto is_best = [](const std::vector<double>& values, const ChoiceQuestion& question) {
    return std::ranges::max_element(values) - values.begin() == question.answer ? 1 : 0;
  };
  for (const ChoiceQuestion& question : questions) {
    const std::size_t count = question.choices.size();
    std::vector<double> sums(log_probabilities.begin(), log_probabilities.begin() + static_cast<std::ptrdiff_t>(count)),
        of_character, of_byte;
    for (std::size_t i = 0; i < count; ++i) {
      of_character.push_back(sums[i] / static_cast<double>(count_characters(question.choices[i])));
      of_byte.push_back(sums[i] / static_cast<double>(question.choices[i].size()));
    }
    by_sum += is_best(sums, question);
    by_character += is_best(of_character, question);
    by_byte += is_best(of_byte, question);
    log_probabilities = log_probabilities.subspan(count);
  }
  const std::int64_t count = std::ssize(questions);
  return {.questions = count,
          .by_sum = accuracy_of(by_sum, count),
          .by_character = accuracy_of(by_character, count),
          .by_byte = accuracy_of(by_byte, count)};
}

}  // namespace teratron
