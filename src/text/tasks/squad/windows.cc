#include "tasks/squad/windows.h"

#include <algorithm>

#include "base/error.h"

namespace teratron::squad {
namespace {

// The first byte of a character of valid UTF-8; the text's end where it has fewer.
std::size_t byte_of_character(std::string_view text, std::int64_t character) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins_one = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins_one && character-- == 0) return at;
  }
  return text.size();
}

}  // namespace

std::vector<Window> windows_of(std::int64_t tokens, std::int64_t room, std::int64_t shared) {
  check(room > shared && shared >= 0, "windows_of: no room for new tokens");
  std::vector<Window> windows;
  std::int64_t first = 0;
  for (; first + room < tokens; first += room - shared) windows.push_back({first, room});
  windows.push_back({first, tokens - first});
  return windows;
}

std::size_t begin_of_answer(std::string_view text, const Answer& answer) {
  if (answer.start) {
    const std::size_t begin = byte_of_character(text, *answer.start);
    if (text.substr(begin).starts_with(answer.text)) return begin;
  }
  return text.find(answer.text);
}

std::optional<AnswerTokens> tokens_of_bytes(std::span<const TokenSpan> tokens, std::size_t begin, std::size_t end) {
  const auto first = std::ranges::partition_point(tokens, [&](const TokenSpan& each) { return each.end <= begin; });
  const auto behind = std::ranges::partition_point(tokens, [&](const TokenSpan& each) { return each.begin < end; });
  if (first >= behind) return {};
  return AnswerTokens{.first = first - tokens.begin(), .last = behind - tokens.begin() - 1};
}

}  // namespace teratron::squad
