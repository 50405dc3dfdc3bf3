#include "checkpoint/hugging_face/hugging_face_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/hugging_face/mapping.h"
#include "model/family.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "float64";
    case DType::kBF16: return "bfloat16";
    case DType::kF16: return "float16";
    default: return "float32";
  }
}

}  // namespace

std::int64_t intermediate_size(std::int64_t there, const ModelConfig& model) {
  return there == usual_ffn_size(model.hidden_size) ? 0 : there;
}

bool flag_or(const JsonFields& fields, std::string_view key, bool absent) {
  return fields.has(key) ? fields.boolean(key) : absent;
}

double number_or(const JsonFields& fields, std::string_view key, double absent) {
  return fields.has(key) ? fields.number(key) : absent;
}

bool is_architecture(const JsonFields& fields, std::string_view name) {
  return fields.has("architectures") && fields["architectures"] == Json::array({name});
}

Activation read_gelu(const JsonFields& fields, std::string_view key, std::string_view absent,
                     std::vector<std::string>& unsupported) {
  // transformers has several names for the same function.
  constexpr std::array<std::string_view, 5> kTanh = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate",
                                                     "gelu_python_tanh"};
  constexpr std::array<std::string_view, 2> kErf = {"gelu", "gelu_python"};
  const std::string name = fields.has(key) ? fields.string(key) : std::string(absent);
  if (std::ranges::find(kTanh, name) != kTanh.end()) return Activation::kGeluTanh;
  if (std::ranges::find(kErf, name) != kErf.end()) return Activation::kGeluErf;
  unsupported.push_back(
      fmt::format("{} '{}' (there are {}, {})", key, name, fmt::join(kTanh, ", "), fmt::join(kErf, ", ")));
  return Activation::kGeluTanh;
}

HuggingFaceConfig read_hugging_face_config(const std::filesystem::path& path) {
  const Json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  const std::string type = fields.string("model_type");
  const Family* const family = find_family(type);
  if (family == nullptr) {
    throw_user_error("'{}' describes a model of type '{}'; those that can be converted: {}", path.string(), type,
                     fmt::join(family_names(), ", "));
  }
  std::vector<std::string> unsupported, unusable_head;
  const ModelConfig model = hugging_face_format(family->kind).read(fields, unsupported, unusable_head);
  for (const Fault& fault : model.faults()) unsupported.push_back(fault.text);
  if (!unsupported.empty()) {
    throw_user_error("'{}' describes a {} that Teratron does not have: {}", path.string(), family->title,
                     fmt::join(unsupported, "; "));
  }
  return {.model = model,
          .tied = !model.untied_output && flag_or(fields, "tie_word_embeddings", true),
          .unusable_head = fmt::format("{}", fmt::join(unusable_head, "; "))};
}

void require_expressible(const ModelConfig& model, const Expressible& fields) {
  ModelConfig usual = model;
  usual.set_kind(model.kind);
  if (!model.family().continues_text) usual.norm_placement = NormPlacement::kPost;  // original BERT's
  Phrases others;
  const auto need = [&](bool holds, std::string_view other) {
    if (!holds) others.emplace_back(other);
  };
  need(fields.key_heads || model.key_value_heads() == model.num_attention_heads,
       "fewer heads of keys (--num-query-groups)");
  need(fields.head_size || model.head_size() * model.num_attention_heads == model.hidden_size,
       "heads of another size (--kv-channels)");
  need(fields.window || model.window == 0, "a window (--window-size)");
  need(fields.own_output || model.untied_output == usual.untied_output,
       "an output projection of its own (--untie-embeddings-and-output-weights)");
  need(fields.norm_placement || model.norm_placement == usual.norm_placement,
       "norms in another place (--layernorm-placement)");
  need(model.has_learned_positions() == usual.has_learned_positions(), "positions of another kind");
  need(fields.rotary_share || model.rotary_share == usual.rotary_share,
       "rotary positions of another share of a head's elements");
  need(model.has_learned_positions() || model.rotary.pairs == usual.rotary.pairs,
       "rotary positions that turn neighbouring elements");
  need(model.rotary.scaling == RotaryConfig::Scaling::kYarn || model.rotary.attention == 1,
       "a factor of rotary positions without YaRN");
  const auto is_silu = [](const ModelConfig& one) { return one.activation == Activation::kSilu; };
  need(is_silu(model) == is_silu(usual), "another activation");
  need(model.norm == usual.norm, "norms of another kind");
  need(model.gated_mlp == usual.gated_mlp, "another kind of feed-forward block");
  need(model.linear_bias == usual.linear_bias && model.qkv_bias == usual.qkv_bias, "biases in other places");
  need(model.head_norms == usual.head_norms, "other norms of queries and keys");
  if (others.empty()) return;
  throw_user_error("this {} has what Hugging Face's has not: {}", model.family().title, fmt::join(others, ", "));
}

std::string hugging_face_config(const ModelConfig& model, DType dtype, const FileContents& tokenizer) {
  nlohmann::ordered_json json = hugging_face_format(model.kind).write(model, tokenizer);
  json["torch_dtype"] = torch_name(dtype);
  return json.dump(2) + "\n";
}

}  // namespace teratron
