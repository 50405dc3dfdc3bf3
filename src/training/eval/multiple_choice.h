// Accuracy of a model that chooses the likeliest of several texts after a question's context, tokenized and counted as
// EleutherAI's lm-evaluation-harness does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/choice_questions.h"
#include "eval/continuations.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct TokenizedChoices {
  std::vector<Continuation> choices;  // of all questions, one after the other
  std::int64_t cut = 0;               // choices that lost the beginning of their context, which the model cannot see
};

// Tokens of each context with a space and each choice. Both are encoded together, and what is beyond as many tokens as
// the context alone has is the choice; white space at the context's end counts as the choice's. Texts begin with
// beginning_of_text() where the tokenizer has it; an empty context is that token, or end_of_text(). UserError: neither
// is there; a choice of no tokens of its own, or of more than `most_tokens`.
TokenizedChoices tokenize_choices(std::span<const ChoiceQuestion> questions, const Tokenizer& tokenizer,
                                  std::int64_t most_tokens);

// A share of the questions, and its standard error by the sample's deviation; 0 for one question.
struct ChoiceAccuracy {
  double share = 0, standard_error = 0;
};

struct ChoiceResult {
  std::int64_t questions = 0;
  ChoiceAccuracy by_sum;        // the choice of the largest log-probability; of equal ones the first
  ChoiceAccuracy by_character;  // of the largest over the choice's characters, without the space before it
  ChoiceAccuracy by_byte;       // over its bytes
};

// log_probabilities: of the choices of all questions, in order, as score_continuations() gives them.
ChoiceResult judge_choices(std::span<const ChoiceQuestion> questions, std::span<const double> log_probabilities);

}  // namespace teratron
