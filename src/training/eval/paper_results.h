// Zero-shot results of the Megatron-LM paper, to stand beside those measured here.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace teratron {

struct PaperResult {
  std::string_view evaluation, number;  // as in the JSON of eval
  std::string_view text;                // in its unit there
};

inline constexpr auto kPaperResults = std::to_array<PaperResult>({
    {"wikitext103", "perplexity", "19.31 (355M), 12.76 (2.5B), 10.81 (8.3B with 24 heads)"},
    {"lambada", "accuracy", "45.18 % (355M), 61.73 % (2.5B), 66.51 % (8.3B with 24 heads)"},
});

// Text of the paper's results; empty: it has none.
constexpr std::string_view paper_result(std::string_view evaluation, std::string_view number) {
  const auto* const found = std::ranges::find_if(kPaperResults, [&](const PaperResult& result) {
    return result.evaluation == evaluation && result.number == number;
  });
  return found == kPaperResults.end() ? std::string_view() : found->text;
}

}  // namespace teratron
