#include "tasks/squad/answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace teratron::squad {
namespace {

// Tokens first to last of the context.
struct Span {
  std::int64_t first = 0, last = 0;
  float score = 0, begin = 0, end = 0;  // score: the sum of the logits of its beginning and end
};

// The places of the largest logits, in descending order; of equal ones the later first. NaN is the least of all, so
// that a model that diverged gives answers too, if bad ones.
void find_largest(std::span<const float> logits, std::int64_t count, std::vector<std::int64_t>& places) {
  places.resize(logits.size());
  std::iota(places.begin(), places.end(), 0);
  const auto value = [&](std::int64_t place) {
    const float logit = logits[static_cast<std::size_t>(place)];
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
    const std::int64_t first = logits.place, behind = first + logits.window.count;
    for (const std::int64_t begin : begins_) {
      if (begin < first) continue;
      for (const std::int64_t end : ends_) {
        if (end < begin || end >= behind || end - begin >= rules_.max_answer_length) continue;
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
    const std::int64_t offset = logits.window.first - logits.place;
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
