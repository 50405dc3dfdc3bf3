#include "eval/continuations.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "eval/finite_outputs.h"

namespace teratron {
namespace {

// Micro-batch of continuations, padded at their ends, which earlier tokens do not see.
struct ContinuationBatch {
  std::vector<std::int32_t> ids, targets;
  std::vector<LanguageModel::ScoredTargets> scored;
  std::int64_t tokens = 0, batch = 0, targets_scored = 0;

  ContinuationBatch(std::span<const Continuation> continuations, std::span<const std::size_t> numbers)
      : tokens(std::ssize(continuations[numbers.front()].ids) - 1),
        batch(std::ssize(numbers)) {  // the longest is first
    for (const std::size_t number : numbers) {
      const Continuation& one = continuations[number];
      const auto row = static_cast<std::size_t>(std::ssize(scored) * tokens), size = one.ids.size() - 1;
      ids.resize(row + static_cast<std::size_t>(tokens));
      targets.resize(ids.size());
      std::copy_n(one.ids.begin(), size, ids.begin() + static_cast<std::ptrdiff_t>(row));
      std::copy_n(one.ids.begin() + 1, size, targets.begin() + static_cast<std::ptrdiff_t>(row));
      scored.push_back(
          {.sequence = std::ssize(scored), .begin = static_cast<std::int64_t>(size) - one.scored, .count = one.scored});
      targets_scored += one.scored;
    }
  }
  MicroBatch micro_batch() const { return {.ids = ids, .targets = targets, .batch = batch, .tokens = tokens}; }
};

std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids;
  if (const auto beginning = tokenizer.beginning_of_text()) ids.push_back(*beginning);
  tokenizer.encode_to(text, ids);
  return ids;
}

// The token that an empty context is.
std::int32_t empty_context(const Tokenizer& tokenizer) {
  const std::optional<std::int32_t> begins = tokenizer.beginning_of_text();
  const std::optional<std::int32_t> token = begins ? begins : tokenizer.end_of_text();
  if (!token) throw_user_error("a question has no context, and the tokenizer has no token that begins or ends texts");
  return *token;
}

}  // namespace

Continuation continuation_of(const Tokenizer& tokenizer, const std::string& context, const std::string& more) {
  Continuation one{.ids = context.empty() ? std::vector{empty_context(tokenizer)} : ids_of(tokenizer, context)};
  const std::size_t before = one.ids.size();
  if (context.empty()) {
    tokenizer.encode_to(more, one.ids);
  } else if (const std::vector<std::int32_t> both = ids_of(tokenizer, context + more); both.size() > before) {
    one.ids.insert(one.ids.end(), both.begin() + static_cast<std::ptrdiff_t>(before), both.end());
  }
  one.scored = static_cast<std::int64_t>(one.ids.size() - before);
  return one;
}

ContinuationScores score_continuations(LanguageModel& model, std::span<const Continuation> continuations,
                                       std::string_view item, const std::function<void(double share)>& done) {
  std::vector<std::size_t> order(continuations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t number) { return continuations[number].ids.size(); });
  Communicator& replicas = *model.mesh().data;
  const auto batch = static_cast<std::size_t>(model.options().batch),
             step = batch * static_cast<std::size_t>(replicas.size());
  std::vector<double> results(2 * continuations.size());  // log-probabilities, then 1 for each that is likeliest
  std::vector<float> losses, is_likeliest;
  for (std::size_t begin = batch * static_cast<std::size_t>(replicas.rank()); begin < order.size(); begin += step) {
    const std::span<const std::size_t> numbers = std::span(order).subspan(begin, std::min(batch, order.size() - begin));
    const ContinuationBatch here(continuations, numbers);
    losses.resize(static_cast<std::size_t>(here.targets_scored));
    is_likeliest.resize(losses.size());
    model.score(here.micro_batch(), here.scored, losses, is_likeliest);
    std::size_t first = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto tokens = static_cast<std::size_t>(here.scored[i].count);
      const std::span<const float> loss = std::span(losses).subspan(first, tokens);
      if (first_not_finite(loss)) {
        throw_output_not_finite(fmt::format("the loss of {} {}", item, continuations[numbers[i]].number),
                                model.backend().compute_dtype());
      }
      results[numbers[i]] = -std::accumulate(loss.begin(), loss.end(), 0.0);
      results[continuations.size() + numbers[i]] =
          std::ranges::count(std::span(is_likeliest).subspan(first, tokens), 0.0F) == 0 ? 1 : 0;
      first += tokens;
    }
    if (done) done(static_cast<double>(begin + numbers.size()) / static_cast<double>(order.size()));
  }
  replicas.all_reduce_host(results);
  const auto middle = results.begin() + std::ssize(continuations);
  return {.log_probabilities = {results.begin(), middle}, .are_likeliest = {middle, results.end()}};
}

}  // namespace teratron
