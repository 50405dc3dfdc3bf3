#include "eval/lambada.h"

#include <algorithm>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "base/host/threads.h"

namespace teratron {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";
constexpr std::int64_t kPassagesAtATime = 64;  // tokenized by a thread at a time

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

// Example of a passage, without tokens if it has less than two words.
Continuation example_of(std::string_view passage, const Tokenizer& tokenizer) {
  const std::string_view text = stripped(passage);
  const std::size_t space = text.find_last_of(kWhiteSpace);
  if (space == text.npos) return {};
  return continuation_of(tokenizer, std::string(stripped(text.substr(0, space))),
                         " " + std::string(text.substr(space + 1)));
}

}  // namespace

ClozeExamples cloze_examples(std::span<const std::string> passages, const Tokenizer& tokenizer,
                             std::int64_t most_tokens) {
  std::vector<Continuation> all(passages.size());
  parallel_for(std::ssize(all), kPassagesAtATime, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      all[static_cast<std::size_t>(i)] = example_of(passages[static_cast<std::size_t>(i)], tokenizer);
    }
  });
  ClozeExamples result;
  std::int64_t passage = 0;
  for (Continuation& example : all) {
    example.number = ++passage;
    if (example.scored == 0 || example.scored == std::ssize(example.ids)) {
      ++result.too_short;
      continue;
    }
    if (example.scored > most_tokens) {
      throw_user_error(
          "passage {}: its last word has {}, and the model sees {}; take the passage out, or take the tokenizer of the "
          "model",
          passage, counted(example.scored, "token"), most_tokens);
    }
    // The last token is no input.
    if (const std::int64_t over = std::ssize(example.ids) - 1 - most_tokens; over > 0) {
      example.ids.erase(example.ids.begin(), example.ids.begin() + over);
      ++result.cut;
    }
    result.examples.push_back(std::move(example));
  }
  if (result.examples.empty()) throw_user_error("no passage has two words, of which a model could find the last one");
  return result;
}

ClozeResult score_cloze(LanguageModel& model, std::span<const Continuation> examples,
                        const std::function<void(double share)>& done, std::vector<bool>* found) {
  const ContinuationScores scores = score_continuations(model, examples, "passage", done);
  if (found != nullptr) *found = scores.are_likeliest;
  return {.examples = std::ssize(examples),
          .correct = std::ranges::count(scores.are_likeliest, true),
          .log_probability = std::accumulate(scores.log_probabilities.begin(), scores.log_probabilities.end(), 0.0)};
}

}  // namespace teratron
