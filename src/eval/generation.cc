#include "eval/generation.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace teratron {
namespace {

// The text so far, and how much of it the cache holds.
class CachedContext {
 public:
  CachedContext(LanguageModel& model, std::span<const std::int32_t> prompt)
      : model_(model),
        text_(prompt.begin(), prompt.end()),
        logits_(static_cast<std::size_t>(model.config().vocab_size)) {
    window_begin_ = std::max<std::int64_t>(0, size() - positions() + 1);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(text_.size()); }
  void append(std::int32_t token) { text_.push_back(token); }

  // Logits of the token after the text.
  std::span<const float> next_logits() {
    if (size() - window_begin_ > positions()) {
      window_begin_ = size() - positions() / 2;
      cached_ = window_begin_;
    }
    cached_ = std::max(cached_, window_begin_);
    while (cached_ < size()) {
      const std::int64_t count = std::min(size() - cached_, piece());
      model_.logits(std::span(text_).subspan(static_cast<std::size_t>(cached_), static_cast<std::size_t>(count)),
                    cached_ - window_begin_, 1, logits_);
      cached_ += count;
    }
    return logits_;
  }

 private:
  std::int64_t positions() const { return model_.config().max_position_embeddings; }
  std::int64_t piece() const { return model_.options().tokens; }

  LanguageModel& model_;
  std::vector<std::int32_t> text_;
  std::vector<float> logits_;
  std::int64_t window_begin_ = 0, cached_ = 0;
};

}  // namespace

std::int64_t generate(LanguageModel& model, std::span<const std::int32_t> prompt, const GenerationSettings& settings,
                      const std::function<void(std::int32_t)>& emit) {
  check(!prompt.empty(), "a prompt of at least one token");
  CachedContext context(model, prompt);
  for (std::int64_t count = 0; count < settings.max_new_tokens; ++count) {
    const std::int32_t token = sample_token(context.next_logits(), settings.sampling, context.size());
    if (settings.stop && token == *settings.stop) return count;
    emit(token);
    context.append(token);
  }
  return settings.max_new_tokens;
}

}  // namespace teratron
