#include "eval/lambada.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "eval/finite_outputs.h"

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
ClozeExample example_of(std::string_view passage, const Tokenizer& tokenizer) {
  const std::string_view text = stripped(passage);
  const std::size_t space = text.find_last_of(kWhiteSpace);
  if (space == text.npos) return {};
  ClozeExample example{.ids = tokenizer.encode(stripped(text.substr(0, space)))};
  const std::size_t before = example.ids.size();
  tokenizer.encode_to(" " + std::string(text.substr(space + 1)), example.ids);
  example.word_tokens = static_cast<std::int64_t>(example.ids.size() - before);
  return example;
}

// Micro-batch of examples, padded at their ends, which earlier tokens do not see.
struct ClozeBatch {
  std::vector<std::int32_t> ids, targets;
  std::vector<LanguageModel::ScoredTargets> scored;
  std::int64_t tokens = 0, batch = 0, words = 0;

  ClozeBatch(std::span<const ClozeExample> examples, std::span<const std::size_t> numbers)
      : tokens(std::ssize(examples[numbers.front()].ids) - 1), batch(std::ssize(numbers)) {  // the longest is first
    for (const std::size_t number : numbers) {
      const ClozeExample& example = examples[number];
      const auto row = static_cast<std::size_t>(std::ssize(scored) * tokens), size = example.ids.size() - 1;
      ids.resize(row + static_cast<std::size_t>(tokens));
      targets.resize(ids.size());
      std::copy_n(example.ids.begin(), size, ids.begin() + static_cast<std::ptrdiff_t>(row));
      std::copy_n(example.ids.begin() + 1, size, targets.begin() + static_cast<std::ptrdiff_t>(row));
      scored.push_back({.sequence = std::ssize(scored),
                        .begin = static_cast<std::int64_t>(size) - example.word_tokens,
                        .count = example.word_tokens});
      words += example.word_tokens;
    }
  }
  MicroBatch micro_batch() const { return {.ids = ids, .targets = targets, .batch = batch, .tokens = tokens}; }
};

}  // namespace

ClozeExamples cloze_examples(std::span<const std::string> passages, const Tokenizer& tokenizer,
                             std::int64_t most_tokens) {
  std::vector<ClozeExample> all(passages.size());
  parallel_for(std::ssize(all), kPassagesAtATime, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      all[static_cast<std::size_t>(i)] = example_of(passages[static_cast<std::size_t>(i)], tokenizer);
    }
  });
  ClozeExamples result;
  std::int64_t passage = 0;
  for (ClozeExample& example : all) {
    example.passage = ++passage;
    if (example.word_tokens == 0 || example.word_tokens == std::ssize(example.ids)) {
      ++result.too_short;
      continue;
    }
    if (example.word_tokens > most_tokens) {
      throw_user_error("a passage's last word has {} tokens, and the model sees {}", example.word_tokens, most_tokens);
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

ClozeResult score_cloze(LanguageModel& model, std::span<const ClozeExample> examples,
                        const std::function<void(double share)>& done, std::vector<bool>* found) {
  std::vector<std::size_t> order(examples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t number) { return examples[number].ids.size(); });
  Communicator& replicas = *model.mesh().data;
  const auto batch = static_cast<std::size_t>(model.options().batch),
             step = batch * static_cast<std::size_t>(replicas.size());
  std::vector<double> results(examples.size() + 1);  // found (1) or not for each word, then the sum of logarithms
  std::vector<float> losses, is_likeliest;
  for (std::size_t begin = batch * static_cast<std::size_t>(replicas.rank()); begin < order.size(); begin += step) {
    const std::span<const std::size_t> numbers = std::span(order).subspan(begin, std::min(batch, order.size() - begin));
    const ClozeBatch here(examples, numbers);
    losses.resize(static_cast<std::size_t>(here.words));
    is_likeliest.resize(losses.size());
    model.score(here.micro_batch(), here.scored, losses, is_likeliest);
    results.back() -= std::accumulate(losses.begin(), losses.end(), 0.0);
    std::size_t word = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto tokens = static_cast<std::size_t>(here.scored[i].count);
      if (first_not_finite(std::span(losses).subspan(word, tokens))) {
        throw_output_not_finite(fmt::format("the loss of passage {}", examples[numbers[i]].passage),
                                model.backend().compute_dtype());
      }
      results[numbers[i]] = std::ranges::count(std::span(is_likeliest).subspan(word, tokens), 0.0F) == 0 ? 1 : 0;
      word += tokens;
    }
    if (done) done(static_cast<double>(begin + numbers.size()) / static_cast<double>(order.size()));
  }
  replicas.all_reduce_host(results);
  if (found != nullptr) found->assign(results.begin(), results.end() - 1);
  return {.examples = std::ssize(examples),
          .correct = std::count(results.begin(), results.end() - 1, 1.0),
          .log_probability = results.back()};
}

}  // namespace teratron
