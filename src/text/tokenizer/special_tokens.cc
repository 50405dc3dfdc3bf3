#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <functional>

namespace teratron {

SpecialTokens::SpecialTokens(std::span<const std::string> tokens, std::span<const std::int32_t> special) {
  for (const std::int32_t id : special) {
    const std::string& text = tokens[static_cast<std::size_t>(id)];
    entries_.push_back({text, id});
    begins_[static_cast<unsigned char>(text[0])] = true;
  }
  std::ranges::stable_sort(entries_, std::greater{}, [](const Entry& entry) { return entry.text.size(); });
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text) const {
  if (entries_.empty()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!begins_[static_cast<unsigned char>(text[i])]) continue;
    for (const Entry& entry : entries_) {
      if (text.substr(i).starts_with(entry.text)) return Match{i, entry.text.size(), entry.id};
    }
  }
  return std::nullopt;
}

std::optional<std::int32_t> SpecialTokens::id_of(std::string_view text) const {
  const auto found = std::ranges::find(entries_, text, &Entry::text);
  if (found == entries_.end()) return std::nullopt;
  return found->id;
}

}  // namespace teratron
