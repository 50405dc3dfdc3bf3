// Vectors of texts by a BERT. Texts run in order of length, so batches have little padding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/encoder.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct TokenizedTexts {
  std::vector<std::vector<std::int32_t>> ids;  // [CLS], the text's tokens, [SEP]
  std::int64_t cut = 0;                        // texts that were too long
  std::int64_t longest = 0, tokens = 0;        // tokens of the longest; of all texts
};

// Tokenizes texts. One with more than `most_tokens`, including [CLS] and [SEP], loses its end. `prompt` comes before
// each text. UserError: the tokenizer has no [CLS] or [SEP], or the model no positions for them.
TokenizedTexts tokenize_texts(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                              std::int64_t most_tokens, std::string_view prompt = "");

struct TextVectorSettings {
  Pooling pooling = Pooling::kMean;
  bool normalize = false;  // to an L2 norm of 1
};

// Calls use(number, vector [hidden]) for each text, in any order, on every rank, and done(texts) after each batch. All
// ranks of the model call it together. UserError: a vector is not finite; names the text, counted from 1.
void make_text_vectors(Encoder& encoder, const TokenizedTexts& texts, const TextVectorSettings& settings,
                       const std::function<void(std::size_t number, std::span<const float> vector)>& use,
                       const std::function<void(std::size_t texts)>& done = {});

// Writes `values` [rows, columns] in NumPy's file format 1.0 (numpy.lib.format), as little-endian float32, row by row.
// "-" is standard output. EnvironmentError as AtomicFile's.
void write_npy(const std::filesystem::path& path, std::int64_t columns, std::span<const float> values);

}  // namespace teratron
