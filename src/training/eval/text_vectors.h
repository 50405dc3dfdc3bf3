// A vector for each text, by a BERT: the texts as its tokens, sorted by length so that hardly any of a batch is
// padding.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/encoder.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct TokenizedTexts {
  std::vector<std::vector<std::int32_t>> ids;  // [CLS], the text's tokens, [SEP]
  std::int64_t cut = 0;                        // texts that were longer than `longest`
  std::int64_t longest = 0, tokens = 0;        // of the longest; of all together
};

// A text with more than `most_tokens`, [CLS] and [SEP] among them, loses its end. `prompt` is put before each.
// UserError: the tokenizer has no [CLS] or [SEP], the model no positions for them.
TokenizedTexts tokenize_texts(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                              std::int64_t most_tokens, std::string_view prompt = "");

struct TextVectorSettings {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;  // to an L2 norm of 1
};

// Calls use(number, vector [hidden]) for each text, in any order, on every rank; all ranks of the model make this call
// together. UserError: a vector is not finite; names the text, counted from 1. done(texts) after each batch, which has
// as many texts as the encoder takes.
void make_text_vectors(Encoder& encoder, const TokenizedTexts& texts, const TextVectorSettings& settings,
                       const std::function<void(std::size_t number, std::span<const float> vector)>& use,
                       const std::function<void(std::size_t texts)>& done = {});

}  // namespace teratron
