#include "eval/generation/generator.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "base/round_up.h"
#include "eval/finite_outputs.h"

namespace teratron {
namespace {

// A prompt's unit. On CPUs rows have the same bits in any product of 64 rows and more
// (tests/eval/prompt_pieces_test.cc).
constexpr std::int64_t kUnit = 64;

}  // namespace

Generator::Generator(LanguageModel& model, const GeneratorLimits& limits, GeneratorEvents events)
    : model_(model),
      unit_(std::min(kUnit, model.options().tokens)),
      limits_(limits),
      events_(std::move(events)),
      kept_(static_cast<std::size_t>(model.options().caches)) {
  active_.reserve(kept_.size());
}

std::optional<std::int64_t> Generator::submit(GeneratorRequest request) {
  const std::vector<std::int32_t>& prompt = request.text.prompt;
  const std::int64_t vocabulary = model_.config().vocab_size, positions = model_.config().max_position_embeddings,
                     ids = request.settings.tokens == 0 ? vocabulary : request.settings.tokens,
                     tokens = static_cast<std::int64_t>(prompt.size());
  check(ids <= vocabulary, "a tokenizer with no more tokens than the model");
  check(!prompt.empty(), "a prompt of at least one token");
  check(std::ranges::all_of(prompt, [&](std::int32_t id) { return id >= 0 && id < ids; }),
        "a prompt of the tokenizer's tokens");
  if (tokens > positions) {
    throw_user_error("a prompt has {} tokens, and the model's context holds {}; shorten it", tokens, positions);
  }
  if (queue_.size() >= limits_.queue) return std::nullopt;
  queue_.push_back({.id = next_id_, .request = std::move(request)});
  return next_id_++;
}

bool Generator::step() {
  remove_finished();
  admit();
  for (Sequence& sequence : active_) move_context(sequence);
  feed_prompts();
  add_tokens();
  remove_finished();
  return !active_.empty() || !queue_.empty();
}

void Generator::cancel(std::int64_t id) {
  std::erase_if(queue_, [&](const Waiting& waiting) { return waiting.id == id; });
  for (Sequence& sequence : active_) sequence.is_finished = sequence.is_finished || sequence.id == id;
}

void Generator::cancel_all() {
  queue_.clear();
  active_.clear();
  kept_.clear();
}

void Generator::admit() {
  while (!queue_.empty() && static_cast<std::int64_t>(active_.size()) < model_.options().caches) {
    Waiting next = std::move(queue_.front());
    queue_.pop_front();
    Sequence& sequence = active_.emplace_back();
    sequence.id = next.id;
    sequence.request = std::move(next.request);
    sequence.text = sequence.request.text.prompt;
    sequence.scores_prompt = sequence.request.settings.prompt_log_probabilities;
    take_cache(sequence);
    if (sequence.scores_prompt ? sequence.is_ready() : sequence.request.settings.max_new_tokens == 0) {
      end_prompt(sequence);
    }
  }
}

// Closes the gaps that ended texts leave, so that a call computes few others.
void Generator::remove_finished() {
  for (std::size_t slot = active_.size(); slot-- > 0;) {  // texts in later slots go on
    if (!active_[slot].is_finished) continue;
    keep_prompt(slot);
    const Sequence& last = active_.back();
    if (slot + 1 < active_.size()) {
      if (last.cached > last.window_begin) {
        model_.copy_cache(static_cast<std::int64_t>(active_.size() - 1), static_cast<std::int64_t>(slot),
                          last.cached - last.window_begin);
      }
      active_[slot] = std::move(active_.back());
    }
    active_.pop_back();
  }
}

// Makes the later half of the text its context when the positions have run out.
void Generator::move_context(Sequence& sequence) const {
  const std::int64_t positions = model_.config().max_position_embeddings;
  if (sequence.is_finished || sequence.size() - sequence.window_begin <= positions) return;
  sequence.cached = sequence.window_begin = sequence.size() - std::max<std::int64_t>(1, positions / 2);
  ++sequence.moves;
}

void Generator::feed_prompts() {
  std::vector<std::size_t> order(active_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::less(), [&](std::size_t slot) { return active_[slot].id; });
  std::int64_t left =
      limits_.prompt_tokens_a_step > 0 ? limits_.prompt_tokens_a_step : std::numeric_limits<std::int64_t>::max();
  for (const std::size_t slot : order) {
    Sequence& sequence = active_[slot];
    share_prompt(slot, left > 0);
    while (left > 0 && !sequence.is_finished && !sequence.is_ready()) {
      const std::int64_t before = sequence.cached;
      feed_piece(slot, left);
      left -= sequence.cached - before;
    }
  }
}

// Feeds the next piece of the tokens before the last one: whole units, of about `most` tokens, or the rest of a unit.
// Scored prompts go by single units, since each of their tokens has a row of logits.
void Generator::feed_piece(std::size_t slot, std::int64_t most) {
  Sequence& sequence = active_[slot];
  const std::int64_t begin = sequence.cached, left = sequence.size() - 1 - begin, tokens = model_.options().tokens;
  most = sequence.scores_prompt ? unit_ : std::min(round_up(std::min(most, tokens), unit_), tokens / unit_ * unit_);
  const std::int64_t count = left < unit_ ? left : std::min(left / unit_ * unit_, most),
                     rows = sequence.scores_prompt ? count : 0;
  logits_.resize(std::max(logits_.size(), static_cast<std::size_t>(rows) * vocabulary()));
  model_.logits(sequence.tokens(begin, count), begin - sequence.window_begin, rows,
                std::span(logits_).first(static_cast<std::size_t>(rows) * vocabulary()),
                static_cast<std::int64_t>(slot));
  sequence.cached += count;
  if (sequence.made == 0) counts_.computed += count;
  if (!sequence.scores_prompt) return;
  score_piece(sequence, begin, count);
  if (sequence.is_ready()) end_prompt(sequence);
}

void Generator::score_piece(Sequence& sequence, std::int64_t begin, std::int64_t count) {
  const std::size_t before = sequence.scored.size();
  sequence.scored.resize(before + static_cast<std::size_t>(count));
  parallel_for(count, 1, [&](std::int64_t row, std::int64_t) {
    const auto at = static_cast<std::size_t>(row);
    sequence.scored[before + at] =
        scored(sequence, finite_row(at, sequence), sequence.text[static_cast<std::size_t>(begin + row + 1)]);
  });
}

// Reports the scores of a prompt, and ends a text of no new tokens.
void Generator::end_prompt(Sequence& sequence) {
  if (sequence.scores_prompt && events_.prompt) events_.prompt(sequence.id, std::move(sequence.scored));
  sequence.scores_prompt = false;
  if (sequence.is_finished) return;  // the event cancelled it
  if (sequence.request.settings.max_new_tokens == 0) finish(sequence, GenerationEnd::kLength);
}

// Adds one token to each text that is ready. All last tokens are computed in one call, tokens before them by one call
// per text: so each text is computed in the same way in any batch. A text that is not ready takes part with the token
// that comes next in its cache, whose place the next piece of its prompt writes again.
void Generator::add_tokens() {
  std::size_t rows = active_.size();
  while (rows > 0 && !active_[rows - 1].is_ready()) --rows;
  if (rows == 0) return;
  std::vector<std::int32_t> tokens, positions;
  for (std::size_t slot = 0; slot < rows; ++slot) {
    const Sequence& sequence = active_[slot];
    const std::int64_t at = std::min(sequence.cached, sequence.size() - 1);
    tokens.push_back(sequence.text[static_cast<std::size_t>(at)]);
    positions.push_back(static_cast<std::int32_t>(at - sequence.window_begin));
  }
  logits_.resize(std::max(logits_.size(), rows * vocabulary()));
  model_.next_logits(tokens, positions, std::span(logits_).first(rows * vocabulary()));
  std::vector<std::optional<GeneratedToken>> chosen(rows);
  parallel_for(static_cast<std::int64_t>(rows), 1, [&](std::int64_t row, std::int64_t) {
    const auto slot = static_cast<std::size_t>(row);
    const Sequence& sequence = active_[slot];
    if (sequence.is_ready()) chosen[slot] = choose(sequence, finite_row(slot, sequence));
  });
  for (std::size_t slot = 0; slot < rows; ++slot) {
    if (!chosen[slot] || active_[slot].is_finished) continue;  // an event may have cancelled it
    Sequence& sequence = active_[slot];
    sequence.cached = sequence.size();
    if (sequence.made == 0) {
      ++counts_.computed;
      counts_.reused += sequence.reused;
      if (events_.read) events_.read(sequence.id, sequence.reused);
      if (sequence.is_finished) continue;
    }
    emit(sequence, *chosen[slot]);
  }
}

GeneratedToken Generator::choose(const Sequence& sequence, std::span<const float> logits) const {
  const GenerationSettings& settings = sequence.request.settings;
  std::vector<float> adjusted;
  if (settings.sampling.changes_logits()) {
    adjusted.assign(logits.begin(), logits.end());
    adjust_logits(adjusted, settings.sampling, sequence.text, sequence.prompt().size());
  }
  const std::int32_t token = sample_token(
      adjusted.empty() ? logits : std::span<const float>(adjusted), settings.sampling,
      {.position = sequence.size(), .prompt = sequence.request.text.number, .sample = sequence.request.text.sample});
  if (!settings.log_probabilities) return {.chosen = {.token = token}, .likeliest = {}};
  return scored(sequence, logits, token);
}

GeneratedToken Generator::scored(const Sequence& sequence, std::span<const float> logits, std::int32_t token) const {
  GeneratedToken result{.chosen = {.token = token, .log_probability = log_probability(logits, token)}, .likeliest = {}};
  const auto count = std::min(static_cast<std::size_t>(sequence.request.alternatives), logits.size());
  if (count == 0) return result;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  const double from = result.chosen.log_probability - static_cast<double>(logit(token));
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_chosen = order[i] == token;  // whose value must be the same to the last bit
    result.likeliest.push_back(
        {.token = order[i],
         .log_probability = is_chosen ? result.chosen.log_probability : from + static_cast<double>(logit(order[i]))});
  }
  return result;
}

// Logits of the tokenizer's tokens after the text of `sequence`.
std::span<const float> Generator::finite_row(std::size_t row, const Sequence& sequence) const {
  const std::int64_t ids = sequence.request.settings.tokens;
  const std::span<const float> logits =
      std::span(logits_).subspan(row * vocabulary(), ids == 0 ? vocabulary() : static_cast<std::size_t>(ids));
  if (first_not_finite(logits)) {
    throw_output_not_finite(fmt::format("a logit after prompt {}", sequence.request.text.number + 1),
                            model_.backend().compute_dtype());
  }
  return logits;
}

void Generator::emit(Sequence& sequence, const GeneratedToken& token) {
  const GenerationSettings& settings = sequence.request.settings;
  if (settings.ends_at(token.chosen.token)) return finish(sequence, GenerationEnd::kEndToken);
  sequence.text.push_back(token.chosen.token);
  ++sequence.made;
  const bool goes_on = events_.token(sequence.id, token);
  if (sequence.is_finished) return;  // the event cancelled it
  if (!goes_on) return finish(sequence, GenerationEnd::kStopped);
  if (sequence.made == settings.max_new_tokens) finish(sequence, GenerationEnd::kLength);
}

void Generator::finish(Sequence& sequence, GenerationEnd end) {
  sequence.is_finished = true;
  if (events_.finished) events_.finished(sequence.id, end, sequence.moves);
}

}  // namespace teratron
