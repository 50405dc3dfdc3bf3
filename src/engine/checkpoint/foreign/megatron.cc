// Megatron-LM's model_optim_rng.pt of one rank (--ckpt-format torch): a dictionary with the state of the model, in
// dictionaries of dictionaries ("model"), its command line ("args") and the order of queries, keys and values
// ("checkpoint_version").
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "checkpoint/foreign/foreign_model.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/manifest.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileName = "model_optim_rng.pt", kTracker = "latest_checkpointed_iteration.txt";

// The file of the only rank, in a folder that was saved to, in that of an iteration, or in that of the rank.
fs::path file_of_rank(fs::path path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return path;
  if (is_there(path / kTracker)) {
    std::string iteration = read_file(path / kTracker);
    iteration.erase(iteration.find_last_not_of(" \n") + 1);
    const bool is_number = !iteration.empty() && iteration.find_first_not_of("0123456789") == std::string::npos;
    path /= is_number ? fmt::format("iter_{:0>7}", iteration) : "release";
  }
  if (is_there(path / "mp_rank_00")) path /= "mp_rank_00";
  if (is_there(path / kFileName)) return path / kFileName;
  throw_user_error(
      "there is no {} of one rank in '{}'; Megatron-LM writes it with --ckpt-format torch, and for several ranks "
      "(mp_rank_00_000, ..) its tools/checkpoint/convert.py makes one for one",
      kFileName, path.string());
}

// Part of a name that versions of Megatron-LM and its core spell otherwise.
struct Spelling {
  std::string_view there, here;
};
constexpr Spelling kSpellings[] = {
    {".self_attention.linear_qkv.layer_norm_", ".input_layernorm."},
    {".self_attention.linear_qkv.", ".attention.query_key_value."},
    {".self_attention.linear_proj.", ".attention.dense."},
    {".self_attention.", ".attention."},
    {".mlp.linear_fc1.layer_norm_", ".post_attention_layernorm."},
    {".mlp.linear_fc1.", ".mlp.dense_h_to_4h."},
    {".mlp.linear_fc2.", ".mlp.dense_4h_to_h."},
    {".pre_mlp_layernorm.", ".post_attention_layernorm."},
    {".input_norm.", ".input_layernorm."},
    {".post_attention_norm.", ".post_attention_layernorm."},
    {".final_norm.", ".final_layernorm."},
};

std::string spelled_here(std::string name) {
  constexpr std::string_view kModel = "language_model.", kEncoder = "encoder.", kDecoder = "decoder.";
  if (name.starts_with(kModel)) name.erase(0, kModel.size());
  for (const std::string_view stack : {kEncoder, kDecoder}) {
    if (name.starts_with(stack)) name.replace(0, stack.size(), "transformer.");
  }
  for (const auto& [there, here] : kSpellings) {
    const std::size_t at = name.find(there);
    if (at != std::string::npos) name.replace(at, there.size(), here);
  }
  return fmt::format("{}{}", kModel, name);
}

const HuggingFaceMapping& megatron_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "language_model.",
      .heads = {},
      .layers = "language_model.transformer.layers.",
      .of_model = {{"embedding.tokens", {"language_model.embedding.word_embeddings"}},
                   {"embedding.positions", {"language_model.embedding.position_embeddings"}},
                   {"final_norm", {"language_model.transformer.final_layernorm"}}},
      .of_layer = {{"norm1", {"input_layernorm"}},
                   {"attention.qkv", {"attention.query_key_value"}},
                   {"attention.projection", {"attention.dense"}},
                   {"norm2", {"post_attention_layernorm"}},
                   {"mlp.up", {"mlp.dense_h_to_4h"}},
                   {"mlp.down", {"mlp.dense_4h_to_h"}}},
      .copies = {},
      .current_name = nullptr};
  return mapping;
}

// Collects the tensors of nested dictionaries under their keys, joined by dots. State that is no weight, as
// that of fp8 layers, is left out.
class MegatronTensors {
 public:
  MegatronTensors(std::shared_ptr<const TorchFile> file, const PickleValue& state) : file_(std::move(file)) {
    add(state, "", 0);
  }
  std::map<std::string, ForeignTensor> take() { return std::move(tensors_); }

 private:
  void add(const PickleValue& dictionary, const std::string& prefix, int depth) {
    constexpr int kDeepest = 8, kMost = 1'000'000;  // a dictionary may be in many, and in itself
    for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
      if (depth > kDeepest || ++entries_ > kMost) {
        throw_user_error("'{}' has its tensors in too many dictionaries", file_->path().string());
      }
      const std::string name = prefix + std::string(dictionary.items[i]->text);
      const PickleValue& value = *dictionary.items[i + 1];
      if (value.is(PickleKind::kDictionary)) {
        add(value, name + ".", depth + 1);
      } else if (!name.ends_with("_extra_state") &&
                 !tensors_.emplace(spelled_here(name), tensor_of(file_, value, name)).second) {
        throw_user_error("'{}' has '{}' twice", file_->path().string(), name);
      }
    }
  }

  std::shared_ptr<const TorchFile> file_;
  std::map<std::string, ForeignTensor> tensors_;
  int entries_ = 0;
};

void find_unsupported_in_megatron(const JsonFields& fields, const ModelConfig& model, Phrases& unsupported) {
  for (const char* key : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "model_parallel_size"}) {
    if (fields.has(key) && fields.integer(key, 0, kLargestSize) > 1) {
      unsupported.push_back(fmt::format("{} {} (Megatron-LM's tools/checkpoint/convert.py makes one file of several)",
                                        key, fields.integer(key, 0, kLargestSize)));
    }
  }
  for (const char* key :
       {"swiglu", "squared_relu", "use_rotary_position_embeddings", "apply_layernorm_1p",
        "untie_embeddings_and_output_weights", "apply_residual_connection_post_layernorm", "group_query_attention",
        "multi_latent_attention", "qk_layernorm", "qk_l2_norm", "quick_geglu", "use_mup"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  // No tensor tells of these. They are there where they hold, whatever their value: a window is a tuple.
  for (const char* key : {"window_size", "softmax_scale"}) {
    if (fields.has(key)) unsupported.push_back(fmt::format("{} (there is none)", key));
  }
  const auto need_text = [&](const char* key, std::string_view wanted) {
    if (!fields.has(key) || fields.string(key) == wanted) return;
    unsupported.push_back(fmt::format("{} '{}' (there is {})", key, fields.string(key), wanted));
  };
  need_text("normalization", "LayerNorm");
  need_text("position_embedding_type", "learned_absolute");
  need_text("softmax_type", "vanilla");
  if (fields.has("num_experts")) unsupported.emplace_back("experts (num_experts)");
  if (fields.has("kv_channels") && fields.integer("kv_channels", 1, kLargestSize) != model.head_size()) {
    unsupported.emplace_back("heads of another size than hidden_size / num_attention_heads (kv_channels)");
  }
}

ModelConfig model_of_megatron(const JsonFields& fields, Phrases& unsupported) {
  ModelConfig model{.num_layers = fields.integer("num_layers", 1, kLargestSize),
                    .hidden_size = fields.integer("hidden_size", 1, kLargestSize),
                    .num_attention_heads = fields.integer("num_attention_heads", 1, kLargestSize),
                    .max_position_embeddings = fields.integer("max_position_embeddings", 1, kLargestSize),
                    .hidden_dropout = number_or(fields, "hidden_dropout", 0.1),
                    .attention_dropout = number_or(fields, "attention_dropout", 0.1),
                    .init_method_std = number_or(fields, "init_method_std", 0.02)};
  model.layernorm_epsilon = number_or(fields, fields.has("norm_epsilon") ? "norm_epsilon" : "layernorm_epsilon", 1e-5);
  if (fields.has("ffn_hidden_size")) {
    model.intermediate_size = intermediate_size(fields.integer("ffn_hidden_size", 1, kLargestSize), model);
  }
  // The fused GELU, which is the default, and OpenAI's are the approximation by tanh; without them it is the exact one.
  const bool is_exact = !flag_or(fields, "bias_gelu_fusion", true) && !flag_or(fields, "openai_gelu", false);
  if (is_exact) model.activation = Activation::kGeluErf;
  find_unsupported_in_megatron(fields, model, unsupported);
  return model;
}

}  // namespace

ForeignWeights read_megatron(const fs::path& path) {
  const fs::path name = file_of_rank(path);
  const auto file = std::make_shared<const TorchFile>(name);
  const PickleValue &content = file->content(), *const state = content.find("model"),
                    *const args = content.find("args");
  if (state == nullptr || !state->is(PickleKind::kDictionary) || args == nullptr || args->state() == nullptr) {
    throw_user_error("'{}' is no checkpoint of one rank of Megatron-LM, which has 'model' and 'args'", name.string());
  }
  const nlohmann::json json = json_of(*args->state());
  const JsonFields fields(json, name);
  Phrases unsupported;
  ForeignWeights weights{.model = model_of_megatron(fields, unsupported),
                         .tensors = {},
                         .mapping = &megatron_mapping(),
                         .lacks_biases = !flag_or(fields, "add_bias_linear", true)};
  if (!unsupported.empty()) {
    throw_user_error("'{}' is of a model that cannot be converted: {}", name.string(), fmt::join(unsupported, "; "));
  }
  weights.tensors = MegatronTensors(file, *state).take();
  // The table's rows are rounded up; args do not always say how many are tokens, and the others do no harm.
  const auto embedding = weights.tensors.find("language_model.embedding.word_embeddings.weight");
  if (embedding != weights.tensors.end() && !embedding->second.shape.empty()) {
    weights.model.vocab_size = embedding->second.shape[0];
  }
  // Rows of queries, keys and values: apart before version 1; in version 1 for each element of each head, and later for
  // each head.
  const PickleValue* const version = content.find("checkpoint_version");
  const double number = version == nullptr ? 0 : version->number;
  if (number >= 1) weights.qkv_groups = number >= 2 ? weights.model.num_attention_heads : weights.model.hidden_size;
  return weights;
}

}  // namespace teratron
