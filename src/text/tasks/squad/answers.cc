#include "tasks/squad/answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace teratron::squad {
namespace {

// Byte offset of a character of valid UTF-8; the text's end if it has fewer.
std::size_t byte_of_character(std::string_view text, std::int64_t character) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!continues_character(text[at]) && character-- == 0) return at;
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
  const auto past = std::ranges::partition_point(tokens, [&](const TokenSpan& each) { return each.begin < end; });
  if (first >= past) return {};
  return AnswerTokens{.first = first - tokens.begin(), .last = past - tokens.begin() - 1};
}

namespace {

// Tokens first to last of the context.
struct Span {
  std::int64_t first = 0, last = 0;
  float score = 0, begin = 0, end = 0;  // score: the sum of the logits of its beginning and end
};

// Indices of the largest logits, in descending order; of equal ones the later first. NaN is the least, so that a model
// that diverged gives answers, too.
void find_largest(std::span<const float> logits, std::int64_t count, std::vector<std::int64_t>& places) {
  places.resize(logits.size());
  std::iota(places.begin(), places.end(), 0);
  const auto value = [&](std::int64_t index) {
    const float logit = logits[static_cast<std::size_t>(index)];
    return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
  };
  const auto middle = places.begin() + std::min<std::int64_t>(count, std::ssize(places));
  std::ranges::partial_sort(places, middle, [&](std::int64_t a, std::int64_t b) {
    return value(a) != value(b) ? value(a) > value(b) : a > b;
  });
  places.erase(middle, places.end());
}

class SpanSearch {
 public:
  explicit SpanSearch(const AnswerRules& rules) : rules_(rules) {}

  void add(const WindowLogits& logits) {
    find_largest(logits.begins, rules_.n_best, begins_);
    find_largest(logits.ends, rules_.n_best, ends_);
    const std::int64_t first = logits.begin_index, past = first + logits.window.count;
    for (const std::int64_t begin : begins_) {
      if (begin < first) continue;
      for (const std::int64_t end : ends_) {
        if (end < begin || end >= past || end - begin >= rules_.max_answer_length) continue;
        consider(logits, begin, end);
      }
    }
  }
  const std::optional<Span>& best() const { return best_; }

 private:
  void consider(const WindowLogits& logits, std::int64_t begin, std::int64_t end) {
    const float of_begin = logits.begins[static_cast<std::size_t>(begin)];
    const float of_end = logits.ends[static_cast<std::size_t>(end)];
    const float score = of_begin + of_end;
    if (!(score > (best_ ? best_->score : -std::numeric_limits<float>::infinity()))) return;  // NaN is no answer
    const std::int64_t offset = logits.window.first - logits.begin_index;
    best_ = {.first = begin + offset, .last = end + offset, .score = score, .begin = of_begin, .end = of_end};
  }

  const AnswerRules& rules_;
  std::optional<Span> best_;
  std::vector<std::int64_t> begins_, ends_;
};

}  // namespace

std::string_view best_answer(std::string_view context, std::span<const TokenSpan> tokens,
                             std::span<const WindowLogits> windows, const AnswerRules& rules) {
  SpanSearch search(rules);
  float none = std::numeric_limits<float>::infinity();
  for (const WindowLogits& logits : windows) {
    search.add(logits);
    none = std::min(none, logits.begins.front() + logits.ends.front());
  }
  const std::optional<Span>& best = search.best();
  if (!best) return {};
  if (rules.may_be_none && none - best->begin - best->end > rules.null_score_diff_threshold) return {};
  const TokenSpan &first = tokens[static_cast<std::size_t>(best->first)],
                  &last = tokens[static_cast<std::size_t>(best->last)];
  return context.substr(first.begin, last.end - first.begin);
}

}  // namespace teratron::squad
