// The model of a BPE tokenizer: the bytes of each token, the merges in order of rank, and the text's treatment before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// Two adjacent tokens that become one.
struct BpeMerge {
  std::int32_t left = 0, right = 0, merged = 0;
  bool operator==(const BpeMerge&) const = default;
};

// Two ids in 64 bits, ordered as the pair.
constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

inline constexpr std::string_view kEndOfText = "<|endoftext|>";
// SentencePiece's sign for a space, in its files.
inline constexpr std::string_view kSpaceSign = "\u2581";

// The words within which tokens are merged (splitter.h, and WordJoints for SentencePiece's).
enum class BpeSplitter : std::uint8_t {
  kGpt2,
  kLlama3,
  kQwen2,
  kDigits,         // SmolLM's: each digit is a word, GPT-2's pattern for the text between them
  kSentencePiece,  // Llama 2's: the whole text is one word, of characters
  kMetaspace       // the same, but every space begins a word
};

// When a space is put before a text.
enum class BpePrefix : std::uint8_t {
  kNever,
  kUnlessSpace,         // before each part between special tokens, unless it begins with a space
  kUnlessSpaceAtStart,  // so, but only at the beginning of the whole text
  kAlways               // before each part
};

struct BpePipeline {
  BpeSplitter splitter = BpeSplitter::kGpt2;
  BpePrefix prefix = BpePrefix::kNever;
  bool nfc = false;            // composes characters first (Unicode's form NFC)
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges make of it
  bool strips_space = false;   // decoding drops one space at the beginning
  std::string beginning;       // the token that the files put before a text; encode() does not. Empty: none
  bool operator==(const BpePipeline&) const = default;

  // SentencePiece's tokens are made of characters, or of bytes where a character has no token; all others of bytes.
  bool is_sentence_piece() const { return splitter >= BpeSplitter::kSentencePiece; }
};

struct BpeModel {
  std::vector<std::string> tokens;    // token id -> its bytes
  std::vector<BpeMerge> merges;       // in order of application
  std::vector<std::int32_t> special;  // ascending ids of tokens that no merge makes, such as <|endoftext|>
  std::string end_of_text = std::string(kEndOfText);  // the special token that ends documents; it may be missing
  BpePipeline pipeline;
  std::vector<std::int32_t> found;  // ascending ids of tokens found in every text first: GPT-NeoX's runs of spaces
  std::vector<std::int32_t> byte_tokens;  // SentencePiece: the ids of <0x00> to <0xFF>
  bool operator==(const BpeModel&) const = default;

  // The id of the special token with this text.
  std::optional<std::int32_t> special_id(std::string_view text) const;
  // Whether GPT-2's pair of files can hold it.
  bool is_as_gpt2() const { return pipeline == BpePipeline{.prefix = pipeline.prefix} && found.empty(); }
};

// The token of each byte; -1: none.
std::array<std::int32_t, 256> tokens_of_bytes(const BpeModel& model);
// Whether no valid UTF-8 has the byte. Byte-level vocabularies learnt from text may lack it, as GPT-NeoX's does.
constexpr bool is_never_in_utf8(std::uint8_t byte) { return byte == 0xC0 || byte == 0xC1 || byte > 0xF4; }

// UserError, naming `source`, unless each byte that text can have is a token, every merge joins two tokens into the
// token of their bytes, no pair is listed twice, and every token that is neither a byte nor made by a merge is listed
// as special or found. (SentencePiece's may have tokens that are never made, and so may a model that ignores merges.)
void validate(const BpeModel& model, std::string_view source);

// A hash for Tokenizer::hash.
std::string hash_of(const BpeModel& model);

}  // namespace teratron
