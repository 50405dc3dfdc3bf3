// Prompts that the caches of ended texts still hold, for later prompts that begin alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace teratron {

// Prompt whose first tokens a cache holds.
struct CachedPrompt {
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 0;  // fewer than the prompt's: the last is never among them
  std::int64_t used = 0;    // when, by a clock of uses; 0: the cache is empty
};

// Number of first tokens of `prompt` whose keys and values a cache of `held`'s first `tokens` has, bit for bit as they
// would be computed. Prompts are computed in whole units of `unit` tokens, with a shorter one before the last token,
// and that one rounds otherwise: so whole units count, and the shorter one where the prompts are the same.
std::int64_t shared_tokens(std::span<const std::int32_t> held, std::int64_t tokens,
                           std::span<const std::int32_t> prompt, std::int64_t unit);

// Caches by number. Those in use are the first ones, and empty here.
class PromptCaches {
 public:
  explicit PromptCaches(std::size_t caches) : caches_(caches) {}

  const CachedPrompt& operator[](std::size_t cache) const { return caches_[cache]; }
  std::size_t size() const { return caches_.size(); }
  void keep(std::size_t cache, std::vector<std::int32_t> prompt, std::int64_t tokens);
  void move(std::size_t from, std::size_t to);
  void use(std::size_t cache) { caches_[cache].used = ++now_; }
  void clear(std::size_t cache) { caches_[cache] = {}; }
  void clear() { caches_.assign(caches_.size(), {}); }
  // The cache from `first` on that is empty or was used least recently; size(): there is none.
  std::size_t least_recent(std::size_t first) const;

 private:
  std::vector<CachedPrompt> caches_;
  std::int64_t now_ = 0;
};

}  // namespace teratron
