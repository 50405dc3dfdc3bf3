#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

constexpr std::int64_t kVocabulary = 50257, kEndOfText = 50256;  // of the published tokenizer

// Hugging Face's classes with heads that Teratron lacks.
constexpr auto kUnknownClasses =
    std::to_array<std::string_view>({"GPT2DoubleHeadsModel", "GPT2ForSequenceClassification",
                                     "GPT2ForTokenClassification", "GPT2ForQuestionAnswering"});

// Adds settings that our model does not compute.
void find_unsupported(const JsonFields& fields, std::vector<std::string>& unsupported) {
  for (const std::string_view name : kUnknownClasses) {
    if (!is_architecture(fields, name)) continue;
    unsupported.push_back(fmt::format("the class {} (there are GPT2LMHeadModel and GPT2Model)", name));
  }
  if (!flag_or(fields, "scale_attn_weights", true)) unsupported.emplace_back("scale_attn_weights false");
  // reorder_and_upcast_attn is an order of the same operations, for fp16.
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
}

}  // namespace

ModelConfig read_gpt2_config(const JsonFields& fields, Phrases& unsupported, Phrases& /*unusable_head*/) {
  ModelConfig model{.num_layers = fields.integer("n_layer", 1, kLargestSize),
                    .hidden_size = fields.integer("n_embd", 1, kLargestSize),
                    .num_attention_heads = fields.integer("n_head", 1, kLargestSize),
                    .vocab_size = fields.integer("vocab_size", 1, kLargestSize),
                    .max_position_embeddings = fields.integer("n_positions", 1, kLargestSize),
                    .layernorm_epsilon = number_or(fields, "layer_norm_epsilon", 1e-5),
                    .hidden_dropout = number_or(fields, "resid_pdrop", 0.1),
                    .attention_dropout = number_or(fields, "attn_pdrop", 0.1),
                    .init_method_std = number_or(fields, "initializer_range", 0.02),
                    .activation = read_gelu(fields, "activation_function", "gelu_new", unsupported)};
  if (fields.has("n_inner")) {
    model.intermediate_size = intermediate_size(fields.integer("n_inner", 1, kLargestSize), model);
  }
  const double after_embedding = number_or(fields, "embd_pdrop", 0.1);
  if (after_embedding != model.hidden_dropout) model.embedding_dropout = after_embedding;
  if (after_embedding < 0 || after_embedding >= 1) {
    unsupported.push_back(fmt::format("embd_pdrop {} (it must be at least 0 and below 1)", after_embedding));
  }
  find_unsupported(fields, unsupported);
  return model;
}

nlohmann::ordered_json gpt2_config(const ModelConfig& model, const FileContents& tokenizer) {
  require_expressible(model, {});
  std::optional<std::int64_t> end_of_text = special_token_id(tokenizer, "<|endoftext|>");
  if (tokenizer.empty() && model.vocab_size == kVocabulary) end_of_text = kEndOfText;
  const nlohmann::ordered_json end = end_of_text ? nlohmann::ordered_json(*end_of_text) : nullptr;
  return {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"n_layer", model.num_layers},
      {"n_head", model.num_attention_heads},
      {"n_embd", model.hidden_size},
      {"n_inner",
       model.intermediate_size == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(model.intermediate_size)},
      {"n_positions", model.max_position_embeddings},
      {"n_ctx", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"activation_function", model.activation == Activation::kGeluErf ? "gelu" : "gelu_new"},
      {"layer_norm_epsilon", model.layernorm_epsilon},
      {"embd_pdrop", model.dropout_after_embedding()},
      {"resid_pdrop", model.hidden_dropout},
      {"attn_pdrop", model.attention_dropout},
      {"initializer_range", model.init_method_std},
      {"bos_token_id", end},
      {"eos_token_id", end},
      {"tie_word_embeddings", true},
      {"scale_attn_weights", true},
      {"scale_attn_by_inverse_layer_idx", false},
      {"reorder_and_upcast_attn", false},
      {"use_cache", true},
  };
}

}  // namespace teratron
