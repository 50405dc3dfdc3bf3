// The answer that a model's outputs mean: the best span over the windows of a paragraph, or that there is none
// (Rajpurkar et al., arXiv 1806.03822, on SQuAD 2.0; Devlin et al., arXiv 1810.04805, section 4.3).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tasks/squad/windows.h"

namespace teratron::squad {

struct AnswerRules {
  std::int64_t max_answer_length = 30;  // tokens
  std::int64_t n_best = 20;
  bool may_be_none = false;  // 2.0
  double null_score_diff_threshold = 0;
};

// What a model gave for one window.
struct WindowLogits {
  Window window;
  std::int64_t place = 0;               // of the window's first token in the sequence
  std::span<const float> begins, ends;  // of the whole sequence
};

// A part of `context`, whose tokens are `tokens`. Candidates are, of each window, the spans from one of the n_best
// tokens of the sequence that have the largest logits of a beginning to one of the n_best of an end, where both are of
// the context, in order, and not too long; a span's score is the sum of its two logits, in single precision. The span
// of the largest score is the answer. Of equal ones it is that of the earlier window, then of the larger logit of the
// beginning, then of the end, and of equal logits that of the later token.
//
// Where there may be no answer, the score of that is a window's sum at [CLS], and the least of all windows'; if it is
// above the best span's by more than the threshold, the answer is empty. It is empty, too, without a candidate.
std::string_view best_answer(std::string_view context, std::span<const TokenSpan> tokens,
                             std::span<const WindowLogits> windows, const AnswerRules& rules);

}  // namespace teratron::squad
