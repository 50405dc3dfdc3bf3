// The config.json of a Llama, and of Mistral, Qwen 2 and Qwen 3, which differ in few fields.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"
#include "model/family.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

// Values that transformers takes where a field is absent.
struct Absent {
  ModelKind kind;
  std::string_view class_name;                           // of the model with its output projection
  std::int64_t positions, key_heads, head_size, window;  // key_heads 0: as many as heads; head_size 0: hidden / heads
};
constexpr Absent kAbsent[] = {
    {ModelKind::kLlama, "LlamaForCausalLM", 2048, 0, 0, 0},
    {ModelKind::kMistral, "MistralForCausalLM", 131072, 8, 0, 4096},
    {ModelKind::kQwen2, "Qwen2ForCausalLM", 32768, 32, 0, 0},
    {ModelKind::kQwen3, "Qwen3ForCausalLM", 32768, 32, 128, 0},
};
const Absent& absent_of(ModelKind kind) { return *std::ranges::find(kAbsent, kind, &Absent::kind); }

std::int64_t size_or(const JsonFields& fields, std::string_view key, std::int64_t absent) {
  return fields.has(key) ? fields.integer(key, 1, kLargestSize) : absent;
}

// Settings that the model does not compute.
void find_unsupported(const JsonFields& fields, const Absent& absent, Phrases& unsupported) {
  if (fields.has("architectures")) {
    const Json& classes = fields["architectures"];
    const bool is_known =
        classes.is_array() && classes.size() == 1 &&
        (classes[0] == absent.class_name ||
         classes[0] == std::string(absent.class_name.substr(0, absent.class_name.find("For"))) + "Model");
    if (!is_known) unsupported.push_back(fmt::format("the class {} (there is {})", classes.dump(), absent.class_name));
  }
  const std::string activation = fields.has("hidden_act") ? fields.string("hidden_act") : "silu";
  if (activation != "silu" && activation != "swish")
    unsupported.push_back(fmt::format("hidden_act '{}' (there is silu)", activation));
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  if (fields.has("quantization_config")) unsupported.emplace_back("quantized weights (quantization_config)");
}

// Tokens that a token sees; with layer_types, every layer must be of one type.
std::int64_t read_window(const JsonFields& fields, const Absent& absent, Phrases& unsupported) {
  const bool has_no_window = absent.window == 0;
  // Present and null: no window. Qwen's counts only with use_sliding_window.
  const bool is_absent = !fields.contains("sliding_window");
  std::int64_t window = fields.has("sliding_window") ? fields.integer("sliding_window", 1, kLargestSize)
                        : is_absent                  ? absent.window
                                                     : 0;
  if (has_no_window) window = 0;
  if (!fields.has("layer_types")) return window;
  const Json& types = fields["layer_types"];
  const auto all = [&](std::string_view name) {
    return types.is_array() && std::ranges::all_of(types, [&](const Json& type) { return type == name; });
  };
  if (all("full_attention")) return 0;
  if (all("sliding_attention") && fields.has("sliding_window"))
    return fields.integer("sliding_window", 1, kLargestSize);
  unsupported.emplace_back("layer_types of several kinds (every layer must be full_attention, or sliding_attention)");
  return window;
}

nlohmann::ordered_json first_special_token(const FileContents& tokenizer,
                                           std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const std::optional<std::int64_t> id = special_token_id(tokenizer, name)) return *id;
  }
  return nullptr;
}

}  // namespace

ModelConfig read_llama_like_config(ModelKind kind, const JsonFields& fields, Phrases& unsupported) {
  const Absent& absent = absent_of(kind);
  ModelConfig model;
  model.set_kind(kind);
  model.num_layers = fields.integer("num_hidden_layers", 1, kLargestSize);
  model.hidden_size = fields.integer("hidden_size", 1, kLargestSize);
  model.num_attention_heads = fields.integer("num_attention_heads", 1, kLargestSize);
  model.num_key_value_heads = size_or(fields, "num_key_value_heads", absent.key_heads);
  if (model.num_key_value_heads == model.num_attention_heads) model.num_key_value_heads = 0;
  model.head_dim = size_or(fields, "head_dim", absent.head_size);
  if (model.head_dim * model.num_attention_heads == model.hidden_size) model.head_dim = 0;
  model.intermediate_size = intermediate_size(fields.integer("intermediate_size", 1, kLargestSize), model);
  model.vocab_size = fields.integer("vocab_size", 1, kLargestSize);
  model.max_position_embeddings = size_or(fields, "max_position_embeddings", absent.positions);
  model.layernorm_epsilon = number_or(fields, "rms_norm_eps", 1e-6);
  model.attention_dropout = number_or(fields, "attention_dropout", 0);
  model.init_method_std = number_or(fields, "initializer_range", 0.02);
  model.untied_output = !flag_or(fields, "tie_word_embeddings", false);
  model.window = read_window(fields, absent, unsupported);
  read_rotary(fields, model, unsupported);
  if (model.rotary_share != 1) unsupported.emplace_back("partial_rotary_factor other than 1");
  find_unsupported(fields, absent, unsupported);
  return model;
}

nlohmann::ordered_json llama_config(const ModelConfig& model, const FileContents& tokenizer) {
  const Absent& absent = absent_of(model.kind);
  const bool is_mistral = model.kind == ModelKind::kMistral;
  require_expressible(model, {.key_heads = true, .head_size = true, .window = is_mistral, .own_output = true});
  nlohmann::ordered_json json = {
      {"architectures", {absent.class_name}},
      {"model_type", model.family().name},
      {"num_hidden_layers", model.num_layers},
      {"num_attention_heads", model.num_attention_heads},
      {"num_key_value_heads", model.key_value_heads()},
      {"head_dim", model.head_size()},
      {"hidden_size", model.hidden_size},
      {"intermediate_size", model.ffn_hidden_size()},
      {"max_position_embeddings", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"hidden_act", "silu"},
      {"rms_norm_eps", model.layernorm_epsilon},
      {"attention_dropout", model.attention_dropout},
      {"initializer_range", model.init_method_std},
      {"rope_theta", model.rotary.base},
      {"rope_scaling", rotary_scaling(model.rotary)},
      {"bos_token_id", first_special_token(tokenizer, {"<|begin_of_text|>", "<s>", "<|endoftext|>"})},
      {"eos_token_id", first_special_token(tokenizer, {"<|end_of_text|>", "</s>", "<|endoftext|>"})},
      {"tie_word_embeddings", !model.untied_output},
      {"use_cache", true},
  };
  if (is_mistral) {
    json["sliding_window"] = model.window == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(model.window);
  }
  return json;
}

}  // namespace teratron
