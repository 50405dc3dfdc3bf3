// The config.json of a Hugging Face model. Families have readers and writers of their own (*_config.cc, gpt_neox.cc),
// which mapping.h lists.
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

// HuggingFaceFormat::read and write.
using Phrases = std::vector<std::string>;
ModelConfig read_gpt2_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head);
ModelConfig read_bert_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head);
ModelConfig read_roberta_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head);
ModelConfig read_distilbert_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head);
ModelConfig read_llama_like_config(ModelKind kind, const JsonFields& fields, Phrases& unsupported);
template <ModelKind kind>
ModelConfig read_llama_config(const JsonFields& fields, Phrases& unsupported, Phrases& /*unusable_head*/) {
  return read_llama_like_config(kind, fields, unsupported);
}
ModelConfig read_gpt_neox_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head);
nlohmann::ordered_json gpt_neox_config(const ModelConfig& model, const FileContents& tokenizer);
nlohmann::ordered_json gpt2_config(const ModelConfig& model, const FileContents& tokenizer);
nlohmann::ordered_json distilbert_config(const ModelConfig& model, const FileContents& tokenizer);
nlohmann::ordered_json bert_config(const ModelConfig& model, const FileContents& tokenizer);
nlohmann::ordered_json llama_config(const ModelConfig& model, const FileContents& tokenizer);

// Properties of the function in which a model may differ from others of its family, as its config.json has fields for
// them.
struct Expressible {
  bool key_heads = false, head_size = false, window = false, own_output = false, norm_placement = false,
       rotary_share = false;
};
// UserError, by name: the model differs in others.
void require_expressible(const ModelConfig& model, const Expressible& fields);

// Number of a text's first position in RoBERTa's table: that after the padding token's id.
constexpr std::int64_t kRobertaFirstPosition = 2;

// Labels of a class's head (label_config.cc): num_labels, id2label and label2id.
void read_label_names(const JsonFields& fields, ModelConfig& model, Phrases& unsupported);
void write_label_names(const ModelConfig& model, nlohmann::ordered_json& json);

// Base, share and scaling of rotary positions (rotary_config.cc); the value of rope_scaling.
void read_rotary(const JsonFields& fields, ModelConfig& model, Phrases& unsupported);
nlohmann::ordered_json rotary_scaling(const RotaryConfig& rotary);

// For all readers. Absent fields have transformers' own defaults.
// intermediate_size for ModelConfig; 0 where it is four times the hidden size.
std::int64_t intermediate_size(std::int64_t there, const ModelConfig& model);
bool flag_or(const JsonFields& fields, std::string_view key, bool absent);
double number_or(const JsonFields& fields, std::string_view key, double absent);
bool is_architecture(const JsonFields& fields, std::string_view name);  // "architectures" names this class alone
Activation read_gelu(const JsonFields& fields, std::string_view key, std::string_view absent,
                     std::vector<std::string>& unsupported);

}  // namespace teratron
