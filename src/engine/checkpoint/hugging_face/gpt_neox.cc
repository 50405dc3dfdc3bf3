// GPT-NeoX and Pythia: the names of their tensors, and their config.json. Queries, keys and values of a head stand
// together there.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

// Buffers that older files have beside the weights.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

void find_unsupported_in_neox(const JsonFields& fields, Phrases& unsupported) {
  if (fields.has("architectures") && !is_architecture(fields, "GPTNeoXForCausalLM") &&
      !is_architecture(fields, "GPTNeoXModel")) {
    unsupported.push_back(fmt::format("the class {} (there is GPTNeoXForCausalLM)", fields["architectures"].dump()));
  }
  if (!flag_or(fields, "attention_bias", true)) unsupported.emplace_back("attention_bias false");
  if (fields.has("quantization_config")) unsupported.emplace_back("quantized weights (quantization_config)");
}

}  // namespace

const HuggingFaceMapping& gpt_neox_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "gpt_neox.",
      .heads = {"embed_out."},
      .layers = "gpt_neox.layers.",
      .of_model = {{"embedding.tokens", {"gpt_neox.embed_in"}},
                   {"final_norm", {"gpt_neox.final_layer_norm"}},
                   {"output", {"embed_out"}}},
      .of_layer = {{"norm1", {"input_layernorm"}},
                   {.ours = "attention.qkv", .theirs = {"attention.query_key_value"}, .by_head = true},
                   {"attention.projection", {"attention.dense"}},
                   {"norm2", {"post_attention_layernorm"}},
                   {"mlp.up", {"mlp.dense_h_to_4h"}},
                   {"mlp.down", {"mlp.dense_4h_to_h"}}},
      .copies = {{"embed_out.weight", "gpt_neox.embed_in.weight"}},
      .current_name = [](std::string_view stored) -> std::optional<std::string> {
        if (is_buffer(stored)) return std::nullopt;
        return std::string(stored);
      }};
  return mapping;
}

ModelConfig read_gpt_neox_config(const JsonFields& fields, Phrases& unsupported, Phrases& /*unusable_head*/) {
  ModelConfig model;
  model.set_kind(ModelKind::kGptNeox);
  model.num_layers = fields.integer("num_hidden_layers", 1, kLargestSize);
  model.hidden_size = fields.integer("hidden_size", 1, kLargestSize);
  model.num_attention_heads = fields.integer("num_attention_heads", 1, kLargestSize);
  model.intermediate_size = intermediate_size(fields.integer("intermediate_size", 1, kLargestSize), model);
  model.vocab_size = fields.integer("vocab_size", 1, kLargestSize);
  model.max_position_embeddings = fields.integer("max_position_embeddings", 1, kLargestSize);
  model.layernorm_epsilon = number_or(fields, "layer_norm_eps", 1e-5);
  model.hidden_dropout = number_or(fields, "hidden_dropout", 0);
  model.embedding_dropout = model.hidden_dropout == 0 ? 1 : model.hidden_dropout;
  model.attention_dropout = number_or(fields, "attention_dropout", 0);
  model.init_method_std = number_or(fields, "initializer_range", 0.02);
  model.activation = read_gelu(fields, "hidden_act", "gelu", unsupported);
  model.untied_output = !flag_or(fields, "tie_word_embeddings", false);
  if (!flag_or(fields, "use_parallel_residual", true)) model.norm_placement = NormPlacement::kPre;
  model.rotary_share = number_or(fields, "rotary_pct", model.rotary_share);
  model.rotary.base = number_or(fields, "rotary_emb_base", model.rotary.base);
  read_rotary(fields, model, unsupported);
  if (model.rotary_share == 0) unsupported.emplace_back("rotary_pct 0");
  find_unsupported_in_neox(fields, unsupported);
  return model;
}

nlohmann::ordered_json gpt_neox_config(const ModelConfig& model, const FileContents& tokenizer) {
  require_expressible(model, {.own_output = true, .norm_placement = true, .rotary_share = true});
  const std::optional<std::int64_t> end = special_token_id(tokenizer, "<|endoftext|>");
  const nlohmann::ordered_json end_of_text = end ? nlohmann::ordered_json(*end) : nullptr;
  return {
      {"architectures", {"GPTNeoXForCausalLM"}},
      {"model_type", "gpt_neox"},
      {"num_hidden_layers", model.num_layers},
      {"num_attention_heads", model.num_attention_heads},
      {"hidden_size", model.hidden_size},
      {"intermediate_size", model.ffn_hidden_size()},
      {"max_position_embeddings", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"hidden_act", model.activation == Activation::kGeluErf ? "gelu" : "gelu_new"},
      {"layer_norm_eps", model.layernorm_epsilon},
      {"hidden_dropout", model.hidden_dropout},
      {"attention_dropout", model.attention_dropout},
      {"initializer_range", model.init_method_std},
      {"rotary_pct", model.rotary_share},
      {"rotary_emb_base", model.rotary.base},
      {"rope_scaling", rotary_scaling(model.rotary)},
      {"use_parallel_residual", model.norm_placement == NormPlacement::kParallel},
      {"attention_bias", true},
      {"bos_token_id", end_of_text},
      {"eos_token_id", end_of_text},
      {"tie_word_embeddings", !model.untied_output},
      {"use_cache", true},
  };
}

}  // namespace teratron
