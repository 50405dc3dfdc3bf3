#include "eval/generation/prompt_caches.h"

#include <algorithm>
#include <utility>

namespace teratron {

std::int64_t shared_tokens(std::span<const std::int32_t> held, std::int64_t tokens,
                           std::span<const std::int32_t> prompt, std::int64_t unit) {
  const std::int64_t alike = std::ranges::mismatch(held, prompt).in1 - held.begin(),
                     before_last = std::ssize(prompt) - 1;
  if (tokens == before_last && std::ssize(held) == std::ssize(prompt) && alike >= before_last) return before_last;
  return std::min({alike, tokens, before_last}) / unit * unit;
}

void PromptCaches::keep(std::size_t cache, std::vector<std::int32_t> prompt, std::int64_t tokens) {
  caches_[cache] = {.prompt = std::move(prompt), .tokens = tokens, .used = ++now_};
}

void PromptCaches::move(std::size_t from, std::size_t to) { caches_[to] = std::exchange(caches_[from], {}); }

std::size_t PromptCaches::least_recent(std::size_t first) const {
  if (first >= caches_.size()) return caches_.size();
  const auto oldest = std::ranges::min_element(caches_.begin() + static_cast<std::ptrdiff_t>(first), caches_.end(), {},
                                               &CachedPrompt::used);
  return static_cast<std::size_t>(oldest - caches_.begin());
}

}  // namespace teratron
