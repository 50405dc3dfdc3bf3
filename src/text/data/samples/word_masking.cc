#include "data/samples/word_masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

// Weight that is proportional to p(n).
double weight_of(int n, const NgramLaw& law) {
  constexpr double kGoesOn = 0.8;  // 1 - p of SpanBERT's geometric law, p = 0.2
  return law.is_geometric ? std::pow(kGoesOn, n - 1) : 1.0 / n;
}

// A length from 1, ..., most.
int draw_length(int most, const NgramLaw& law, RandomSequence& random) {
  double total = 0;
  for (int n = 1; n <= most; ++n) total += weight_of(n, law);
  double left = random.uniform() * total;
  int n = 1;
  while (n < most && left >= weight_of(n, law)) left -= weight_of(n++, law);
  return n;
}

WordRun draw_shortest(std::span<const WordRun> words, RandomSequence& random) {
  const std::int32_t least = std::ranges::min(words, {}, &WordRun::size).size();
  const auto count = std::ranges::count(words, least, &WordRun::size);
  auto skipped = random.below(static_cast<std::uint64_t>(count));
  return *std::ranges::find_if(words, [&](const WordRun& word) { return word.size() == least && skipped-- == 0; });
}

}  // namespace

void find_words(std::span<const TokenKind> tokens, std::vector<WordRun>& words) {
  words.clear();
  bool is_in_word = false;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    if (tokens[i] == TokenKind::kSpecial) {
      is_in_word = false;
    } else if (is_in_word && tokens[i] == TokenKind::kContinuesWord) {
      words.back().end = at + 1;
    } else {
      words.push_back({at, at + 1});
      is_in_word = true;
    }
  }
}

std::int64_t masking_budget(std::int64_t tokens, double prob) {
  return std::max<std::int64_t>(1, std::llrint(static_cast<double>(tokens) * prob));
}

std::int64_t draw_ngrams(std::span<const WordRun> words, std::int64_t budget, const NgramLaw& law, RandomStream stream,
                         std::vector<WordRun>& drawn, std::vector<std::int32_t>& scratch) {
  check(budget >= 1 && law.longest >= 1, "draw_ngrams: budget, longest n-gram");
  drawn.clear();
  if (words.empty()) return 0;
  RandomSequence random(stream);
  // The words not yet drawn, then a mark for each word that is taken.
  const std::size_t count = words.size();
  scratch.assign(2 * count, 0);
  const auto waiting = std::span(scratch).first(count), taken = std::span(scratch).subspan(count);
  std::iota(waiting.begin(), waiting.end(), 0);
  std::int64_t masked = 0;
  for (std::size_t left = count; left > 0 && masked < budget; --left) {
    std::swap(waiting[random.below(left)], waiting[left - 1]);
    const auto first = static_cast<std::size_t>(waiting[left - 1]);
    int most = 1;
    for (std::size_t i = first + 1; i < count && most < law.longest && words[i].begin == words[i - 1].end; ++i) ++most;
    auto end = first + static_cast<std::size_t>(draw_length(most, law, random));
    while (end > first && masked + words[end - 1].end - words[first].begin > budget) --end;
    const auto marks = taken.subspan(first, end - first);
    if (marks.empty() || std::ranges::count(marks, 1) > 0) continue;
    std::ranges::fill(marks, 1);
    drawn.push_back({words[first].begin, words[end - 1].end});
    masked += drawn.back().size();
  }
  if (drawn.empty()) drawn.push_back(draw_shortest(words, random));
  return masked > 0 ? masked : drawn.back().size();
}

}  // namespace teratron
