// The config.json of a Hugging Face GPT-2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "model/config.h"

namespace teratron {

struct HuggingFaceConfig {
  ModelConfig model;
  bool tied = true;  // tie_word_embeddings: the output projection is the token embedding
};

// UserError: missing, not a GPT-2's, or asking for what our GPT-2 does not do (all reasons at once).
HuggingFaceConfig read_hugging_face_config(const std::filesystem::path& path);

// Every key that from_pretrained needs. `end_of_text` is the id generation stops at, where it is known.
std::string hugging_face_config(const ModelConfig& model, DType dtype, std::optional<std::int64_t> end_of_text);

}  // namespace teratron
