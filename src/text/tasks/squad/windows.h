// Paragraphs longer than a sequence, cut into windows that overlap (Devlin et al., arXiv 1810.04805, in its code), and
// where an answer lies among a paragraph's tokens.
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

// The windows of a paragraph of so many tokens: `room` tokens each, but for the last, which ends where the paragraph
// does. Each shares its first `shared` tokens with the one before, 0 <= shared < room. One at least, if of no tokens.
std::vector<Window> windows_of(std::int64_t tokens, std::int64_t room, std::int64_t shared);

// The first byte of a text's answer, which occurs in it: where it says that it begins, if that is so, else where the
// text has it first.
std::size_t begin_of_answer(std::string_view text, const Answer& answer);

// Tokens first to last of a paragraph.
struct AnswerTokens {
  std::int64_t first = 0, last = 0;
};

// The tokens that have a byte of bytes [begin, end) of the text, which they all together cover but for what is no part
// of any token. Nothing where there are none.
std::optional<AnswerTokens> tokens_of_bytes(std::span<const TokenSpan> tokens, std::size_t begin, std::size_t end);

}  // namespace teratron::squad
