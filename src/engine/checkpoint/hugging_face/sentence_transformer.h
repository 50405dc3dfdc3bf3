// Settings of a sentence-transformers folder beside the encoder: how the vectors of a text's tokens become one (Reimers
// and Gurevych 2019, arXiv 1908.10084; the library since its version 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/tokenizer_files.h"
#include "model/config.h"

namespace teratron {

struct SentenceTransformer {
  std::filesystem::path encoder;  // the folder of the encoder and its tokenizer, which may be one below
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  std::int64_t max_tokens = 0;  // of a text, with [CLS] and [SEP]; 0: as many as the encoder has positions
  bool lower_case = false;      // texts, whatever the tokenizer does
  std::string prompt;           // that every text begins with
};

// Settings of vectors that were learned here; none: the model does not end in vectors (ModelHead::kVectors).
std::optional<SentenceTransformer> learned_vectors(const std::filesystem::path& folder, const ModelConfig& model);

// The files of such a model beside its encoder, by their paths in the folder, as all versions of the library read them.
// None: the model does not end in vectors.
inline constexpr const char* kPoolingFile = "1_Pooling/config.json";
FileContents sentence_transformer_files(const ModelConfig& model);

// Reads modules.json and the files that it names, as the library does. None: `folder` has no modules.json. UserError,
// with all reasons: a module that we do not compute (Dense, several poolings side by side).
std::optional<SentenceTransformer> read_sentence_transformer(const std::filesystem::path& folder);

}  // namespace teratron
