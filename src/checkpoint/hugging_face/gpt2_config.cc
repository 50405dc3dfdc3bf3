#include "checkpoint/hugging_face/gpt2_config.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool flag(const JsonFields& fields, std::string_view key, bool absent) {
  return fields.has(key) ? fields.boolean(key) : absent;
}

// Absent numbers have transformers' own defaults.
double number(const JsonFields& fields, std::string_view key, double absent) {
  return fields.has(key) ? fields.number(key) : absent;
}

Activation read_activation(const JsonFields& fields, std::vector<std::string>& unsupported) {
  const std::string name = fields.has("activation_function") ? fields.string("activation_function") : "gelu_new";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  unsupported.push_back(fmt::format("activation_function '{}' (there are gelu_new, gelu_pytorch_tanh and gelu)", name));
  return Activation::kGeluTanh;
}

// What would make the model compute something that ours does not.
void find_unsupported(const JsonFields& fields, const ModelConfig& model, std::vector<std::string>& unsupported) {
  if (!flag(fields, "scale_attn_weights", true)) unsupported.emplace_back("scale_attn_weights false");
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"}) {
    if (flag(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  if (fields.has("n_inner") && fields.integer("n_inner", 1, kLargestSize) != model.ffn_hidden_size()) {
    unsupported.push_back(fmt::format("n_inner {} (it must be 4 n_embd = {})", fields["n_inner"].get<std::int64_t>(),
                                      model.ffn_hidden_size()));
  }
  const double after_embedding = number(fields, "embd_pdrop", 0.1);
  if (after_embedding != model.hidden_dropout) {
    unsupported.push_back(
        fmt::format("embd_pdrop {} beside resid_pdrop {} (one hidden dropout serves both; only "
                    "training uses it, so set them alike)",
                    after_embedding, model.hidden_dropout));
  }
}

}  // namespace

HuggingFaceConfig read_hugging_face_config(const fs::path& path) {
  const Json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  if (fields.string("model_type") != "gpt2") {
    throw_user_error("'{}' describes a model of type '{}'; only gpt2 can be converted", path.string(),
                     fields.string("model_type"));
  }
  std::vector<std::string> unsupported;
  const ModelConfig model{.num_layers = fields.integer("n_layer", 1, kLargestSize),
                          .hidden_size = fields.integer("n_embd", 1, kLargestSize),
                          .num_attention_heads = fields.integer("n_head", 1, kLargestSize),
                          .vocab_size = fields.integer("vocab_size", 1, kLargestSize),
                          .max_position_embeddings = fields.integer("n_positions", 1, kLargestSize),
                          .layernorm_epsilon = number(fields, "layer_norm_epsilon", 1e-5),
                          .hidden_dropout = number(fields, "resid_pdrop", 0.1),
                          .attention_dropout = number(fields, "attn_pdrop", 0.1),
                          .init_method_std = number(fields, "initializer_range", 0.02),
                          .activation = read_activation(fields, unsupported)};
  find_unsupported(fields, model, unsupported);
  for (const Fault& fault : model.faults()) unsupported.push_back(fault.text);
  if (!unsupported.empty()) {
    throw_user_error("'{}' describes a GPT-2 that Teratron does not have: {}", path.string(),
                     fmt::join(unsupported, "; "));
  }
  return {.model = model, .tied = flag(fields, "tie_word_embeddings", true)};
}

std::string hugging_face_config(const ModelConfig& model, DType dtype, std::optional<std::int64_t> end_of_text) {
  const auto torch_name = [&] {
    switch (dtype) {
      case DType::kF64: return "float64";
      case DType::kBF16: return "bfloat16";
      case DType::kF16: return "float16";
      default: return "float32";
    }
  };
  const nlohmann::ordered_json end = end_of_text ? nlohmann::ordered_json(*end_of_text) : nullptr;
  const nlohmann::ordered_json json = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"n_layer", model.num_layers},
      {"n_head", model.num_attention_heads},
      {"n_embd", model.hidden_size},
      {"n_inner", nullptr},
      {"n_positions", model.max_position_embeddings},
      {"n_ctx", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"activation_function", model.activation == Activation::kGeluErf ? "gelu" : "gelu_new"},
      {"layer_norm_epsilon", model.layernorm_epsilon},
      {"embd_pdrop", model.hidden_dropout},
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
      {"torch_dtype", torch_name()},
  };
  return json.dump(2) + "\n";
}

}  // namespace teratron
