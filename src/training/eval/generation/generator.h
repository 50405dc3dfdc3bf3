// Generator of texts that come and go: each request has its own settings, joins when a cache is free, and leaves when
// it ends or is cancelled (continuous batching; Yu et al. 2022, Orca).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "eval/generation/generation.h"
#include "eval/generation/prompt_caches.h"

namespace teratron {

struct TokenScore {
  std::int32_t token = 0;
  double log_probability = std::numeric_limits<double>::quiet_NaN();  // NaN: not asked for
};

struct GeneratedToken {
  TokenScore chosen;
  std::vector<TokenScore> likeliest;  // GeneratorRequest::alternatives of them, the likeliest first
};

struct GeneratorRequest {
  GenerationRequest text;
  GenerationSettings settings;
  std::int64_t alternatives = 0;  // likeliest tokens reported beside each token whose log-probability is asked for
};

struct GeneratorLimits {
  std::size_t queue = 0;  // most requests that may wait for a cache; submit() refuses more
  // Tokens of prompts that are computed between two tokens of other texts, rounded up to whole units; 0: all.
  std::int64_t prompt_tokens_a_step = 0;
};

// Events of one request come in order. They may call cancel(), but neither submit() nor cancel_all().
struct GeneratorEvents {
  // All of a prompt's tokens but the first, if the settings ask for their log-probabilities.
  std::function<void(std::int64_t id, std::vector<GeneratedToken> tokens)> prompt;
  // New token. Returning false ends the text.
  std::function<bool(std::int64_t id, const GeneratedToken& token)> token;
  std::function<void(std::int64_t id, GenerationEnd end, std::int64_t moves)> finished;  // as GenerationEvents
  // Before the first new token: how many of the prompt's tokens were copied from another text's cache.
  std::function<void(std::int64_t id, std::int64_t reused)> read{};
};

// Tokens of prompts since the start.
struct PromptCounts {
  std::int64_t computed = 0, reused = 0;
};

// Most tokens of a prompt in one call of the model. From 256 on, products run nearly at their rate of training.
inline constexpr std::int64_t kPromptPiece = 256;

// One thread at a time calls it. All ranks of the model make the same calls. Its memory is planned: the caches are the
// model's, and a request's text has at most as many tokens as a cache. A prompt that begins as that of another text
// does takes its keys and values from there, also where that text has ended and its cache is not needed yet. Prompts
// whose log-probabilities are asked for are computed.
class Generator {
 public:
  // `model`: of purpose kGeneration; prompts are fed in pieces of at most its `tokens`. It outlives the generator.
  Generator(LanguageModel& model, const GeneratorLimits& limits, GeneratorEvents events);

  // Takes a request; its number counts from 0. nullopt: the queue is full. UserError: a prompt longer than the model's
  // positions.
  std::optional<std::int64_t> submit(GeneratorRequest request);

  // Gives each text that is ready its next token, after a share of the prompts that are not. A text has the bits that
  // it has alone, whatever is beside it (on a GPU: within the rounding of LinearForward::rows_alone). Returns whether
  // there is more to do. UserError: logits that are not finite, with GenerationRequest::number; no text goes on then.
  bool step();

  // Ends a request without an event, if it is not finished; its cache is free before the next step.
  void cancel(std::int64_t id);
  void cancel_all();

  std::size_t waiting() const { return queue_.size(); }
  std::size_t active() const { return active_.size(); }
  const PromptCounts& prompt_counts() const { return counts_; }

 private:
  struct Waiting {
    std::int64_t id = 0;
    GeneratorRequest request;
  };
  // Text in progress, and the part of it that its cache holds.
  struct Sequence {
    std::int64_t id = 0;
    GeneratorRequest request;
    std::vector<std::int32_t> text;
    std::vector<GeneratedToken> scored;         // of the prompt
    std::int64_t window_begin = 0, cached = 0;  // beginnings of the context, and of tokens not cached yet
    std::int64_t made = 0, moves = 0, reused = 0;
    bool is_finished = false, scores_prompt = false;

    std::int64_t size() const { return static_cast<std::int64_t>(text.size()); }
    const std::vector<std::int32_t>& prompt() const { return request.text.prompt; }
    // Tokens of the prompt that other texts may take from its cache.
    std::int64_t shareable() const { return moves > 0 ? 0 : std::min(cached, std::ssize(prompt()) - 1); }
    bool takes_from_others() const { return !is_finished && !scores_prompt && made == 0 && moves == 0 && !is_ready(); }
    bool is_ready() const { return !is_finished && cached == size() - 1; }
    std::span<const std::int32_t> tokens(std::int64_t begin, std::int64_t count) const {
      return std::span(text).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
    }
  };

  std::size_t vocabulary() const { return static_cast<std::size_t>(model_.config().vocab_size); }
  void admit();
  void remove_finished();
  void move_context(Sequence& sequence) const;
  void feed_prompts();
  void feed_piece(std::size_t slot, std::int64_t most);
  // Cache that shares most tokens with a prompt.
  struct Share {
    std::size_t cache = 0;
    std::int64_t tokens = 0;
  };
  Share best_share(const Sequence& sequence) const;
  void share_prompt(std::size_t slot, bool is_fed);
  void take_cache(Sequence& sequence);
  void keep_prompt(std::size_t slot);
  void score_piece(Sequence& sequence, std::int64_t begin, std::int64_t count);
  void end_prompt(Sequence& sequence);
  void add_tokens();
  GeneratedToken choose(const Sequence& sequence, std::span<const float> logits) const;
  std::span<const float> finite_row(std::size_t row, const Sequence& sequence) const;
  GeneratedToken scored(const Sequence& sequence, std::span<const float> logits, std::int32_t token) const;
  void emit(Sequence& sequence, const GeneratedToken& token);
  void finish(Sequence& sequence, GenerationEnd end);

  LanguageModel& model_;
  const std::int64_t unit_;  // prompts are computed and shared in whole units of so many tokens
  const GeneratorLimits limits_;
  const GeneratorEvents events_;
  std::deque<Waiting> queue_;
  std::vector<Sequence> active_;  // the one in slot i has cache i
  PromptCaches kept_;             // of the other caches
  PromptCounts counts_;
  std::int64_t next_id_ = 0;
  std::vector<float> logits_;  // rows of the last call
};

}  // namespace teratron
