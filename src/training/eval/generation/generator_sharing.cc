// Prompts of a generator that begin alike.
#include <utility>

#include "eval/generation/generator.h"

namespace teratron {

// Looks at all caches but the text's own: those of active texts come first, then those of ended ones.
Generator::Share Generator::best_share(const Sequence& sequence) const {
  Share best;
  for (std::size_t cache = 0; cache < kept_.size(); ++cache) {
    const bool is_active = cache < active_.size();
    if (is_active && &active_[cache] == &sequence) continue;
    const std::vector<std::int32_t>& held = is_active ? active_[cache].prompt() : kept_[cache].prompt;
    const std::int64_t tokens =
        shared_tokens(held, is_active ? active_[cache].shareable() : kept_[cache].tokens, sequence.prompt(), unit_);
    if (tokens > best.tokens) best = {.cache = cache, .tokens = tokens};
  }
  return best;
}

// Gives the text the first cache that no text has. The prompt that the cache holds moves to one that was used less
// recently; the tokens that both prompts begin with stay.
void Generator::take_cache(Sequence& sequence) {
  const std::size_t slot = active_.size() - 1;
  const CachedPrompt& held = kept_[slot];
  if (held.used == 0) return;
  if (sequence.takes_from_others()) {
    const std::int64_t tokens = shared_tokens(held.prompt, held.tokens, sequence.prompt(), unit_);
    const Share other = best_share(sequence);
    if (other.tokens <= tokens) {
      if (tokens > 0) kept_.use(slot);
    } else if (other.cache >= active_.size()) {
      kept_.use(other.cache);  // it must not be the one that goes
    }
    sequence.cached = sequence.reused = tokens;
  }
  const std::size_t place = kept_.least_recent(slot + 1);
  if (place < kept_.size() && kept_[place].used < held.used && held.prompt != sequence.prompt()) {
    model_.copy_cache(static_cast<std::int64_t>(slot), static_cast<std::int64_t>(place), held.tokens);
    kept_.move(slot, place);
  }
  kept_.clear(slot);
}

// Copies the longest beginning of the prompt that another cache has. A text that is not fed in this step waits until
// one has all of it but the last token.
void Generator::share_prompt(std::size_t slot, bool is_fed) {
  Sequence& sequence = active_[slot];
  if (!sequence.takes_from_others()) return;
  const Share best = best_share(sequence);
  if (best.tokens <= sequence.cached || (!is_fed && best.tokens < sequence.size() - 1)) return;
  model_.copy_cache(static_cast<std::int64_t>(best.cache), static_cast<std::int64_t>(slot), best.tokens);
  if (best.cache >= active_.size()) kept_.use(best.cache);
  sequence.reused += best.tokens - sequence.cached;
  sequence.cached = best.tokens;
}

// Keeps the prompt of an ended text, unless another cache has it. Texts in progress have the caches before its place.
void Generator::keep_prompt(std::size_t slot) {
  Sequence& ended = active_[slot];
  const std::int64_t tokens = ended.shareable();
  if (tokens == 0) return;
  for (std::size_t cache = 0; cache < kept_.size(); ++cache) {
    const bool is_active = cache < active_.size();
    if (cache == slot || (is_active ? active_[cache].shareable() : kept_[cache].tokens) < tokens) continue;
    if ((is_active ? active_[cache].prompt() : kept_[cache].prompt) != ended.prompt()) continue;
    if (!is_active) kept_.use(cache);
    return;
  }
  const bool is_last = slot + 1 == active_.size();
  const std::size_t place = is_last ? slot : kept_.least_recent(active_.size());
  if (place == kept_.size()) return;
  if (place != slot) {
    model_.copy_cache(static_cast<std::int64_t>(slot), static_cast<std::int64_t>(place), tokens);
  }
  kept_.keep(place, std::move(ended.request.text.prompt), tokens);
}

}  // namespace teratron
