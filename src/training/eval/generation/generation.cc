#include "eval/generation/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/host/threads.h"
#include "eval/finite_outputs.h"

namespace teratron {
namespace {

// Text in progress, and the part of it that its cache holds.
struct Sequence {
  std::size_t request = 0;
  std::vector<std::int32_t> text;
  std::int64_t window_begin = 0, cached = 0;  // beginnings of the context, and of tokens that are not cached yet
  std::int64_t made = 0, moves = 0;
  bool is_finished = false;

  std::int64_t size() const { return static_cast<std::int64_t>(text.size()); }
  std::span<const std::int32_t> tokens(std::int64_t begin, std::int64_t count) const {
    return std::span(text).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }
};

// Batch of sequences; the one in slot i has cache i. Every round adds a token to each: all last tokens are computed in
// one call, tokens before them by one call per sequence. So each sequence is computed in the same way in any batch.
class GenerationBatch {
 public:
  GenerationBatch(LanguageModel& model, std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                  const GenerationEvents& events)
      : model_(model), requests_(requests), settings_(settings), events_(events), order_(requests.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::greater(), [&](std::size_t i) { return requests[i].prompt.size(); });
  }

  void run() {
    while (next_ < order_.size() && static_cast<std::int64_t>(active_.size()) < model_.options().caches) {
      active_.emplace_back();
      begin_next(active_.size() - 1);
    }
    for (replace_finished(); !active_.empty(); replace_finished()) round();
  }

 private:
  std::int64_t positions() const { return model_.config().max_position_embeddings; }
  std::size_t vocabulary() const { return static_cast<std::size_t>(model_.config().vocab_size); }
  std::size_t tokens() const {
    return settings_.tokens == 0 ? vocabulary() : static_cast<std::size_t>(settings_.tokens);
  }

  void begin_next(std::size_t slot) {
    const std::size_t request = order_[next_++];
    active_[slot] = {.request = request, .text = requests_[request].prompt};
    if (settings_.prompt_log_probabilities) {
      feed_scored(slot);
    } else {
      copy_same_prompt(slot);
    }
    if (settings_.max_new_tokens == 0) finish(active_[slot], GenerationEnd::kLength);
  }

  // Copies the cache of an active sequence with the same prompt.
  void copy_same_prompt(std::size_t slot) {
    Sequence& sequence = active_[slot];
    const std::int64_t before_last = sequence.size() - 1;
    if (before_last == 0) return;
    for (std::size_t other = 0; other < active_.size(); ++other) {
      const Sequence& source = active_[other];
      if (other == slot || source.moves > 0 || source.cached < before_last ||
          requests_[source.request].prompt != sequence.text) {
        continue;
      }
      model_.copy_cache(static_cast<std::int64_t>(other), static_cast<std::int64_t>(slot), before_last);
      sequence.cached = before_last;
      return;
    }
  }

  // Feeds all tokens but the last, in pieces. Calls use(begin, count) after each piece, with `rows` rows of logits per
  // token.
  void feed(std::size_t slot, std::int64_t rows, const std::function<void(std::int64_t, std::int64_t)>& use) {
    Sequence& sequence = active_[slot];
    while (sequence.cached < sequence.size() - 1) {
      const std::int64_t begin = sequence.cached,
                         count = std::min(sequence.size() - 1 - begin, model_.options().tokens);
      logits_.resize(std::max(logits_.size(), static_cast<std::size_t>(rows * count) * vocabulary()));
      model_.logits(sequence.tokens(begin, count), begin - sequence.window_begin, rows * count,
                    std::span(logits_).first(static_cast<std::size_t>(rows * count) * vocabulary()),
                    static_cast<std::int64_t>(slot));
      sequence.cached += count;
      if (use) use(begin, count);
    }
  }

  void feed_scored(std::size_t slot) {
    const std::vector<std::int32_t>& text = active_[slot].text;
    std::vector<double> scores(text.size() - 1);
    feed(slot, 1, [&](std::int64_t begin, std::int64_t count) {
      parallel_for(count, 1, [&](std::int64_t row, std::int64_t) {
        const auto at = static_cast<std::size_t>(begin + row);
        scores[at] = log_probability(finite_row(static_cast<std::size_t>(row), active_[slot]), text[at + 1]);
      });
    });
    if (events_.prompt) events_.prompt(active_[slot].request, scores);
  }

  // Logits of the tokenizer's tokens after the text of `sequence`.
  std::span<const float> finite_row(std::size_t row, const Sequence& sequence) const {
    const std::span<const float> logits = std::span(logits_).subspan(row * vocabulary(), tokens());
    if (first_not_finite(logits)) {
      throw_output_not_finite(fmt::format("a logit after prompt {}", requests_[sequence.request].number + 1),
                              model_.backend().compute_dtype());
    }
    return logits;
  }

  // Adds one token to each sequence.
  void round() {
    std::vector<std::int32_t> last, at;
    for (std::size_t slot = 0; slot < active_.size(); ++slot) {
      Sequence& sequence = active_[slot];
      if (sequence.size() - sequence.window_begin > positions()) {
        sequence.cached = sequence.window_begin = sequence.size() - std::max<std::int64_t>(1, positions() / 2);
        ++sequence.moves;
      }
      feed(slot, 0, {});
      last.push_back(sequence.text.back());
      at.push_back(static_cast<std::int32_t>(sequence.size() - 1 - sequence.window_begin));
      sequence.cached = sequence.size();
    }
    logits_.resize(std::max(logits_.size(), active_.size() * vocabulary()));
    model_.next_logits(last, at, std::span(logits_).first(active_.size() * vocabulary()));
    choose_tokens();
    for (std::size_t slot = 0; slot < active_.size(); ++slot) emit(active_[slot], chosen_[slot]);
  }

  struct Chosen {
    std::int32_t token = 0;
    double log_probability = std::numeric_limits<double>::quiet_NaN();
  };

  void choose_tokens() {
    chosen_.assign(active_.size(), {});
    parallel_for(static_cast<std::int64_t>(active_.size()), 1, [&](std::int64_t begin, std::int64_t) {
      const auto slot = static_cast<std::size_t>(begin);
      const Sequence& sequence = active_[slot];
      const GenerationRequest& request = requests_[sequence.request];
      const std::span<const float> logits = finite_row(slot, sequence);
      std::vector<float> penalized;
      if (settings_.sampling.repetition_penalty != 1) {
        penalized.assign(logits.begin(), logits.end());
        penalize_repetition(penalized, sequence.text, settings_.sampling.repetition_penalty);
      }
      Chosen& chosen = chosen_[slot];
      chosen.token = sample_token(penalized.empty() ? logits : std::span<const float>(penalized), settings_.sampling,
                                  {.position = sequence.size(), .prompt = request.number, .sample = request.sample});
      if (settings_.log_probabilities) chosen.log_probability = log_probability(logits, chosen.token);
    });
  }

  void emit(Sequence& sequence, const Chosen& chosen) {
    if (settings_.stop && chosen.token == *settings_.stop) return finish(sequence, GenerationEnd::kEndToken);
    sequence.text.push_back(chosen.token);
    ++sequence.made;
    const bool goes_on = events_.token(sequence.request, chosen.token, chosen.log_probability);
    if (!goes_on) return finish(sequence, GenerationEnd::kStopped);
    if (sequence.made == settings_.max_new_tokens) finish(sequence, GenerationEnd::kLength);
  }

  void finish(Sequence& sequence, GenerationEnd end) {
    sequence.is_finished = true;
    if (events_.finished) events_.finished(sequence.request, end, sequence.moves);
  }

  // Gives the slots of ended sequences to the next requests. With none left, the last sequence moves into the slot.
  void replace_finished() {
    for (std::size_t slot = 0; slot < active_.size();) {
      if (!active_[slot].is_finished) {
        ++slot;
      } else if (next_ < order_.size()) {
        begin_next(slot);
      } else {
        const Sequence& last = active_.back();
        if (!last.is_finished && last.cached > last.window_begin) {
          model_.copy_cache(static_cast<std::int64_t>(active_.size() - 1), static_cast<std::int64_t>(slot),
                            last.cached - last.window_begin);
        }
        if (slot + 1 < active_.size()) active_[slot] = std::move(active_.back());
        active_.pop_back();
      }
    }
  }

  LanguageModel& model_;
  const std::span<const GenerationRequest> requests_;
  const GenerationSettings& settings_;
  const GenerationEvents& events_;
  std::vector<std::size_t> order_;  // of the requests
  std::size_t next_ = 0;            // in that order
  std::vector<Sequence> active_;
  std::vector<float> logits_;  // rows of the last call
  std::vector<Chosen> chosen_;
};

}  // namespace

void generate_all(LanguageModel& model, std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                  const GenerationEvents& events) {
  const std::int64_t positions = model.config().max_position_embeddings;
  check(settings.tokens <= model.config().vocab_size, "a tokenizer with no more tokens than the model");
  for (const GenerationRequest& request : requests) {
    check(!request.prompt.empty(), "a prompt of at least one token");
    const std::int64_t ids = settings.tokens == 0 ? model.config().vocab_size : settings.tokens;
    check(std::ranges::all_of(request.prompt, [&](std::int32_t id) { return id >= 0 && id < ids; }),
          "a prompt of the tokenizer's tokens");
    const auto tokens = static_cast<std::int64_t>(request.prompt.size());
    if (tokens > positions) {
      throw_user_error("a prompt has {} tokens, and the model's context holds {}; shorten it", tokens, positions);
    }
  }
  GenerationBatch(model, requests, settings, events).run();
}

std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit) {
  const GenerationRequest request{.prompt = {prompt.begin(), prompt.end()}};
  std::int64_t count = 0;
  const auto token = [&](std::size_t, std::int32_t id, double) {
    ++count;
    emit(id);
    return true;
  };
  generate_all(model, {&request, 1}, settings, {.prompt = {}, .token = token, .finished = {}});
  return count;
}

std::int64_t cache_tokens_for(std::span<const GenerationRequest> requests, const GenerationSettings& settings,
                              const ModelConfig& config) {
  std::int64_t longest = 1;
  for (const GenerationRequest& request : requests) {
    longest = std::max(longest, static_cast<std::int64_t>(request.prompt.size()));
  }
  const std::int64_t positions = config.max_position_embeddings;
  return std::min(positions, longest + std::min(positions, std::max<std::int64_t>(0, settings.max_new_tokens - 1)));
}

std::int64_t choose_caches(std::size_t requests, std::int64_t cache_tokens, const ModelConfig& config,
                           std::int64_t bytes_of_element) {
  constexpr std::int64_t kMost = 32, kMostBytes = std::int64_t{1} << 30;
  const std::int64_t bytes =
      config.num_layers * cache_tokens * 2 * config.key_value_heads() * config.head_size() * bytes_of_element;
  const std::int64_t fit = std::max<std::int64_t>(1, kMostBytes / bytes);
  return std::min({kMost, fit, std::max<std::int64_t>(1, static_cast<std::int64_t>(requests))});
}

std::int64_t fit_prompt(std::vector<std::int32_t>& prompt, std::int64_t positions, LongPrompt rule,
                        std::string_view name) {
  const std::int64_t tokens = static_cast<std::int64_t>(prompt.size()), lost = tokens - positions;
  if (lost <= 0) return 0;
  switch (rule) {
    case LongPrompt::kRefuse:
      throw_user_error(
          "{} has {} tokens, and the model's context holds {}; shorten it, or cut it: --truncate-prompt left keeps its "
          "end, right its beginning",
          name, tokens, positions);
    case LongPrompt::kCutLeft: prompt.erase(prompt.begin(), prompt.begin() + lost); break;
    case LongPrompt::kCutRight: prompt.resize(static_cast<std::size_t>(positions)); break;
  }
  return lost;
}

}  // namespace teratron
