// A BPE tokenizer as llama.cpp's files describe it. "gpt2" is byte-level BPE with a known splitter and merges by rank.
// "llama" is SentencePiece's: it merges any two tokens whose text is a token, the one with the highest score first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace teratron {

struct GgufVocabulary {
  std::string model, splitter;  // the second of "gpt2" alone
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;  // llama.cpp's numbers
  std::vector<float> scores;        // of "llama"
  std::vector<std::string> merges;  // of "gpt2": "left right"
  std::optional<std::int32_t> beginning, unknown;
  std::int32_t end_of_text = 0;
  bool adds_beginning = false, adds_space = false;
  std::vector<std::string> notes;  // for the user: texts whose ids differ in llama.cpp
};

// `vocab_size`: the model's; ids beyond the tokenizer's get tokens that no text has. UserError, with all reasons at
// once: WordPiece, or a BPE from which llama.cpp would make other ids.
GgufVocabulary gguf_vocabulary(const Tokenizer& tokenizer, std::int64_t vocab_size);

}  // namespace teratron
