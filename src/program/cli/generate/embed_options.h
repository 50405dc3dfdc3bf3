// What the user can say to `teratron embed`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "checkpoint/hugging_face/sentence_transformer.h"
#include "data/text/content.h"
#include "eval/text_vectors.h"
#include "options/fields.h"
#include "runtime/loaded_model.h"

namespace teratron {

struct EmbedOptions {
  std::filesystem::path text, load, tokenizer, out, json;
  TextFormat format = TextFormat::kAuto;
  std::string json_key = "text";
  TextVectorSettings vectors;
  bool gives_pooling = false, gives_normalize = false, overwrite = false;
  std::int64_t seq_length = 0, batch = 32;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

FieldList fields_of(EmbedOptions& options);

// Takes from the folder what the flags leave open. Returns, for people, what it says and what was given instead.
std::string take_from(const SentenceTransformer& folder, EmbedOptions& options);

// UserError: more tokens than the model has positions, or too few for [CLS] and [SEP].
void require_positions(const EmbedOptions& options, const WeightSource& source);

// Of a text, with [CLS] and [SEP].
std::int64_t most_tokens(const EmbedOptions& options, const WeightSource& source);

}  // namespace teratron
