// How a sequence is cut into slices of tokens, as users write it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace teratron::pipeline {

struct TokenSlices {
  bool automatic = false;  // "auto": those that a profile says are best
  int count = 1;
  std::vector<std::int64_t> lengths;  // in tokens, first slice first; empty where the user gave their number only
};

// "4" or "uniform:4" (so many, as even as can be), "704,688,656" (their lengths) or "auto". UserError that begins with
// `flag`.
TokenSlices parse_token_slices(std::string_view flag, std::string_view text);

// `count` slices of `tokens` tokens that differ by one at most, longer ones first: early slices have less context.
// UserError where there are fewer tokens than slices.
std::vector<std::int64_t> even_slices(std::int64_t tokens, int count);

}  // namespace teratron::pipeline
