// The model of a byte-level BPE tokenizer: the bytes of each token, and the merges in order of rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Two adjacent tokens that become one.
struct BpeMerge {
  std::int32_t left = 0, right = 0, merged = 0;
  bool operator==(const BpeMerge&) const = default;
};

inline constexpr std::string_view kEndOfText = "<|endoftext|>";

struct BpeModel {
  std::vector<std::string> tokens;    // token id -> its bytes
  std::vector<BpeMerge> merges;       // in order of application
  std::vector<std::int32_t> special;  // ascending ids of tokens that no merge makes, such as <|endoftext|>
  bool add_prefix_space = false;      // encode every text as if it began with a space
  std::string end_of_text = std::string(kEndOfText);  // the special token that ends documents; it may be missing
  bool operator==(const BpeModel&) const = default;
};

// UserError, naming `source`, unless each of the 256 bytes is a token, every merge joins two tokens into the token of
// their bytes, no pair is listed twice, and every token that is neither a byte nor made by a merge is listed special.
void validate(const BpeModel& model, std::string_view source);

// A hash for Tokenizer::hash.
std::string hash_of(const BpeModel& model);

}  // namespace teratron
