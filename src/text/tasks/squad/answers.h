// The answer in a model's outputs: the best span over the windows of a paragraph, or none (Rajpurkar et al., arXiv
// 1806.03822, on SQuAD 2.0; Devlin et al., arXiv 1810.04805, section 4.3).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/squad/format.h"
#include "tokenizer/token_span.h"

namespace teratron::squad {

// Tokens [first, first + count) of a paragraph.
struct Window {
  std::int64_t first = 0, count = 0;
  bool operator==(const Window&) const = default;
};

// The windows of a paragraph of this many tokens: `room` tokens each; the last ends with the paragraph. Each shares its
// first `shared` tokens with the one before, 0 <= shared < room. There is at least one, even if it is empty.
std::vector<Window> windows_of(std::int64_t tokens, std::int64_t room, std::int64_t shared);

// Byte offset of the answer: answer.start if the text matches there, else its first occurrence.
std::size_t begin_of_answer(std::string_view text, const Answer& answer);

// Tokens first to last of a paragraph.
struct AnswerTokens {
  std::int64_t first = 0, last = 0;
};

// The tokens with a byte in bytes [begin, end) of the text. Empty if there are none.
std::optional<AnswerTokens> tokens_of_bytes(std::span<const TokenSpan> tokens, std::size_t begin, std::size_t end);

struct AnswerRules {
  std::int64_t max_answer_length = 30;  // tokens
  std::int64_t n_best = 20;
  bool may_be_none = false;  // 2.0
  double null_score_diff_threshold = 0;
};

// The outputs of a model for one window.
struct WindowLogits {
  Window window;
  std::int64_t begin_index = 0;         // index in the sequence of the window's first token
  std::span<const float> begins, ends;  // of the whole sequence
};

// Finds the answer in `context`, whose tokens are `tokens`. Candidates are, in each window, the spans from one of the
// n_best tokens of the sequence with the largest first-token logits to one of the n_best with the largest last-token
// logits, if both are in the context, in order, and not too long. A span's score is the sum of its two logits, in
// single precision. The highest score wins. Ties go to the earlier window, then to the larger first-token logit, then
// to the larger last-token logit, then to the later token.
//
// If there may be no answer, its score is a window's sum at [CLS], the least over all windows. If that exceeds the best
// span's score by more than the threshold, or there is no candidate, the answer is empty.
std::string_view best_answer(std::string_view context, std::span<const TokenSpan> tokens,
                             std::span<const WindowLogits> windows, const AnswerRules& rules);

}  // namespace teratron::squad
