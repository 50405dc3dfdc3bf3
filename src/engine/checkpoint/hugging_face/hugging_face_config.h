// The config.json of a Hugging Face model. Each kind has a reader and a writer of its own (gpt2_config.cc,
// bert_config.cc).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/json_fields.h"
#include "checkpoint/tokenizer_files.h"
#include "model/config.h"

namespace teratron {

struct HuggingFaceConfig {
  ModelConfig model;  // a BERT of no task has all heads of pre-training here; the stored weights decide which are there
  bool tied = true;   // tie_word_embeddings: the output projection is the token embedding
  std::string unusable_head;  // why the head of a task that is there is none of ours; `model` is then without; or empty
};

// UserError: missing, of a kind that we don't have, or asking for what our model does not do (all reasons at once).
HuggingFaceConfig read_hugging_face_config(const std::filesystem::path& path);

// Every key that from_pretrained needs. `tokenizer`: files that go along; special tokens' ids are found there.
// UserError: Hugging Face has no such model.
std::string hugging_face_config(const ModelConfig& model, DType dtype, const FileContents& tokenizer);

// Phrases about unsupported settings are added to `unsupported`, those about a task's head alone to `unusable_head`.
ModelConfig read_gpt2_config(const JsonFields& fields, std::vector<std::string>& unsupported);
ModelConfig read_bert_config(const JsonFields& fields, std::vector<std::string>& unsupported,
                             std::vector<std::string>& unusable_head);
nlohmann::ordered_json gpt2_config(const ModelConfig& model, const FileContents& tokenizer);
nlohmann::ordered_json bert_config(const ModelConfig& model, const FileContents& tokenizer);

// For both readers. Absent fields have transformers' own defaults.
bool flag_or(const JsonFields& fields, std::string_view key, bool absent);
double number_or(const JsonFields& fields, std::string_view key, double absent);
bool is_architecture(const JsonFields& fields, std::string_view name);  // "architectures" names this class alone
Activation read_gelu(const JsonFields& fields, std::string_view key, std::string_view absent,
                     std::vector<std::string>& unsupported);

}  // namespace teratron
