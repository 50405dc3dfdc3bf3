#include "checkpoint/gguf/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "model/family.h"
#include "nn/rotary.h"

namespace teratron {
namespace {

using Scaling = RotaryConfig::Scaling;

constexpr GgufArchitecture kArchitectures[] = {
    {.kind = ModelKind::kGpt2, .name = "gpt2", .fused_qkv = true},
    {.kind = ModelKind::kLlama,
     .name = "llama",
     .pairs_neighbours = true,
     .any_head_size = true,
     .takes_divisors = true},
    {.kind = ModelKind::kMistral,
     .name = "llama",
     .pairs_neighbours = true,
     .any_head_size = true,
     .takes_divisors = true},
    {.kind = ModelKind::kQwen2, .name = "qwen2"},
    {.kind = ModelKind::kQwen3, .name = "qwen3", .any_head_size = true},
    {.kind = ModelKind::kGptNeox,
     .name = "gptneox",
     .fused_qkv = true,
     .needs_output = true,
     .takes_share = true,
     .may_be_parallel = true},
};

bool is_gelu(Activation activation) {
  return activation == Activation::kGeluTanh || activation == Activation::kGeluErf;
}

// The configuration with the usual function of its family, which flags and files may change.
ModelConfig usual_of(const ModelConfig& config) {
  ModelConfig usual = config;
  usual.set_kind(config.kind);
  return usual;
}

// Tokens that a token sees at most within the model's positions; 0: all.
std::int64_t narrow_window(const ModelConfig& config) {
  return config.window > 0 && config.window < config.max_position_embeddings ? config.window : 0;
}

std::uint32_t number(std::int64_t size) { return static_cast<std::uint32_t>(size); }

}  // namespace

const GgufArchitecture& gguf_architecture(ModelKind kind) {
  const auto found = std::ranges::find(kArchitectures, kind, &GgufArchitecture::kind);
  if (found != std::end(kArchitectures)) return *found;
  throw_user_error("GGUF files of a {} are not written; those of models that continue text are", family_of(kind).title);
}

std::vector<std::string> faults_as(const GgufArchitecture& architecture, const ModelConfig& config) {
  const ModelConfig usual = usual_of(config);
  std::vector<std::string> faults;
  const auto add_if = [&](bool wrong, std::string text) {
    if (wrong) faults.push_back(std::move(text));
  };
  const bool other_function = config.norm != usual.norm || config.gated_mlp != usual.gated_mlp ||
                              config.linear_bias != usual.linear_bias || config.qkv_bias != usual.qkv_bias ||
                              config.head_norms != usual.head_norms ||
                              (config.activation != usual.activation && !is_gelu(config.activation)) ||
                              is_gelu(config.activation) != is_gelu(usual.activation);
  add_if(other_function, fmt::format("its layers are not those of a {}", config.family().title));
  add_if(config.norm_placement != NormPlacement::kPre && !architecture.may_be_parallel,
         "attention and feed-forward block stand beside each other (--layernorm-placement parallel)");
  add_if(
      !architecture.any_head_size && config.head_size() * config.num_attention_heads != config.hidden_size,
      fmt::format("its heads have {} elements (--kv-channels), and must have hidden size / heads", config.head_size()));
  add_if(config.has_learned_positions() && narrow_window(config) > 0,
         fmt::format("its tokens see {} tokens (--window-size)", config.window));
  add_if(config.has_learned_positions() != usual.has_learned_positions(), "its positions are not the family's");
  const RotaryConfig rotary = config.layer_config().rotary;
  add_if(!config.has_learned_positions() && !architecture.takes_share && rotary.elements != config.head_size(),
         fmt::format("rotary positions turn {} of a head's {} elements", rotary.elements, config.head_size()));
  add_if(!config.has_learned_positions() && rotary.pairs != RotaryPairs::kHalves,
         "its rotary positions turn neighbouring elements");
  add_if(rotary.attention != 1 && rotary.scaling != Scaling::kYarn,
         "its rotary positions have a factor, which is not written");
  add_if(rotary.scaling == Scaling::kLlama3 && !architecture.takes_divisors,
         "its rotary positions are scaled as Llama 3.1's, which llama.cpp has for Llama alone");
  add_if(rotary.scaling == Scaling::kYarn, "its rotary positions are scaled by YaRN, which is not written");
  return faults;
}

std::vector<std::string> notes_on(const ModelConfig& config) {
  std::vector<std::string> notes;
  if (narrow_window(config) > 0) {
    notes.push_back(fmt::format(
        "llama.cpp computes no window for this model: the file says {} positions, up to which the results are the same",
        config.window));
  }
  if (config.activation == Activation::kGeluErf) {
    notes.emplace_back("llama.cpp computes GELU by its tanh form: values differ by up to 5e-4");
  }
  return notes;
}

GgufMetadata metadata_as(const GgufArchitecture& architecture, const ModelConfig& config) {
  GgufMetadata metadata;
  const auto add = [&](std::string_view key, GgufValue value) {
    metadata.emplace_back(fmt::format("{}.{}", architecture.name, key), std::move(value));
  };
  const std::int64_t window = narrow_window(config);
  add("vocab_size", number(config.vocab_size));
  add("context_length", number(window > 0 ? window : config.max_position_embeddings));
  add("embedding_length", number(config.hidden_size));
  add("block_count", number(config.num_layers));
  add("feed_forward_length", number(config.ffn_hidden_size()));
  add("attention.head_count", number(config.num_attention_heads));
  add("attention.head_count_kv", number(config.key_value_heads()));
  add("attention.key_length", number(config.head_size()));
  add("attention.value_length", number(config.head_size()));
  add(config.norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      static_cast<float>(config.layernorm_epsilon));
  if (architecture.may_be_parallel) add("use_parallel_residual", config.norm_placement == NormPlacement::kParallel);
  if (config.has_learned_positions()) return metadata;
  const RotaryConfig rotary = config.layer_config().rotary;
  add("rope.dimension_count", number(rotary.elements));
  add("rope.freq_base", static_cast<float>(rotary.base));
  if (rotary.scaling == Scaling::kLinear) {
    add("rope.scaling.type", std::string("linear"));
    add("rope.scaling.factor", static_cast<float>(rotary.factor));
  }
  return metadata;
}

std::vector<float> frequency_divisors(const ModelConfig& config) {
  RotaryConfig rotary = config.layer_config().rotary;
  if (rotary.scaling != Scaling::kLlama3) return {};
  const std::vector<float> scaled = rotary_frequencies(rotary);
  rotary.scaling = Scaling::kNone;
  std::vector<float> divisors = rotary_frequencies(rotary);
  for (std::size_t i = 0; i < divisors.size(); ++i) divisors[i] /= scaled[i];
  return divisors;
}

}  // namespace teratron
