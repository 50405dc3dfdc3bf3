#include "model/presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace teratron {
namespace {

constexpr ModelPreset kPresets[] = {
    {"tiny", 4, 256, 4, "a laptop's few minutes"},
    {"124M", 12, 768, 12, "GPT-2 small"},
    {"355M", 24, 1024, 16, "GPT-2 medium; Megatron-LM's smallest"},
    {"774M", 36, 1280, 20, "GPT-2 large"},
    {"1.5B", 48, 1600, 25, "GPT-2 XL"},
    {"1.2B", 40, 1536, 16, "Megatron-LM Table 1, 1 GPU"},
    {"2.5B", 54, 1920, 20, "Megatron-LM Table 1, 2 GPUs"},
    {"4.2B", 64, 2304, 24, "Megatron-LM Table 1, 4 GPUs"},
    {"8.3B", 72, 3072, 32, "Megatron-LM Table 1, 8 GPUs: the scaling study's, not the one that was evaluated"},
    {"8.3B-24-heads", 72, 3072, 24, "Megatron-LM Table 2, whose perplexities the paper reports"},
    {"gpt3-1B", 24, 2048, 16, "TeraPipe Table 1; heads as in its program, since GPT-3's 24 do not divide the width"},
    {"gpt3-13B", 40, 5120, 40, "TeraPipe Table 1; GPT-3 Table 2.1 has a width of 5140, which 40 heads do not divide"},
    {"gpt3-44B", 96, 6144, 48, "TeraPipe Table 1; heads as in its program"},
    {"gpt3-175B", 96, 12288, 96, "GPT-3 Table 2.1"},
    {"bert-tiny", 4, 256, 4, "a laptop's few minutes", ModelKind::kBert},
    {"bert-336M", 24, 1024, 16, "Megatron-LM Table 4; the size of BERT-large", ModelKind::kBert},
    {"bert-752M", 36, 1280, 20, "Megatron-LM Figure 7, which gives the size alone", ModelKind::kBert},
    {"bert-1.3B", 24, 2048, 32, "Megatron-LM Table 4", ModelKind::kBert},
    {"bert-3.9B", 48, 2560, 40, "Megatron-LM Table 4", ModelKind::kBert},
    {.name = "llama-15m",
     .num_layers = 6,
     .hidden_size = 288,
     .num_attention_heads = 6,
     .source = "a laptop's hour; the size of llama2.c's stories15M",
     .kind = ModelKind::kLlama,
     .intermediate_size = 768,
     .tied = true},
    {.name = "smollm2-135m",
     .num_layers = 30,
     .hidden_size = 576,
     .num_attention_heads = 9,
     .source = "SmolLM2 135M",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 3,
     .intermediate_size = 1536,
     .vocabulary = 49152,
     .rotary_base = 100000,
     .tied = true},
    {.name = "tinyllama-1.1b",
     .num_layers = 22,
     .hidden_size = 2048,
     .num_attention_heads = 32,
     .source = "TinyLlama 1.1B",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 4,
     .intermediate_size = 5632},
    {.name = "llama-3.2-1b",
     .num_layers = 16,
     .hidden_size = 2048,
     .num_attention_heads = 32,
     .source = "Llama 3.2 1B",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 8,
     .intermediate_size = 8192,
     .vocabulary = 128256,
     .rotary_base = 500000,
     .llama3_factor = 32,
     .tied = true},
    {.name = "llama-3.1-8b",
     .num_layers = 32,
     .hidden_size = 4096,
     .num_attention_heads = 32,
     .source = "Llama 3.1 8B",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 8,
     .intermediate_size = 14336,
     .vocabulary = 128256,
     .rotary_base = 500000,
     .llama3_factor = 8},
    {.name = "llama-3.1-70b",
     .num_layers = 80,
     .hidden_size = 8192,
     .num_attention_heads = 64,
     .source = "Llama 3.1 70B",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 8,
     .intermediate_size = 28672,
     .vocabulary = 128256,
     .rotary_base = 500000,
     .llama3_factor = 8},
    {.name = "llama-3.1-405b",
     .num_layers = 126,
     .hidden_size = 16384,
     .num_attention_heads = 128,
     .source = "Llama 3.1 405B",
     .kind = ModelKind::kLlama,
     .num_key_value_heads = 8,
     .intermediate_size = 53248,
     .vocabulary = 128256,
     .rotary_base = 500000,
     .llama3_factor = 8},
    {.name = "mistral-7b",
     .num_layers = 32,
     .hidden_size = 4096,
     .num_attention_heads = 32,
     .source = "Mistral 7B v0.1",
     .kind = ModelKind::kMistral,
     .num_key_value_heads = 8,
     .intermediate_size = 14336,
     .window = 4096},
    {.name = "qwen2.5-0.5b",
     .num_layers = 24,
     .hidden_size = 896,
     .num_attention_heads = 14,
     .source = "Qwen 2.5 0.5B",
     .kind = ModelKind::kQwen2,
     .num_key_value_heads = 2,
     .intermediate_size = 4864,
     .rotary_base = 1000000,
     .epsilon = 1e-6,
     .tied = true},
    {.name = "qwen3-0.6b",
     .num_layers = 28,
     .hidden_size = 1024,
     .num_attention_heads = 16,
     .source = "Qwen 3 0.6B",
     .kind = ModelKind::kQwen3,
     .num_key_value_heads = 8,
     .head_dim = 128,
     .intermediate_size = 3072,
     .rotary_base = 1000000,
     .epsilon = 1e-6,
     .tied = true},
    {.name = "pythia-160m",
     .num_layers = 12,
     .hidden_size = 768,
     .num_attention_heads = 12,
     .source = "Pythia 160M",
     .kind = ModelKind::kGptNeox},
};

// Names at Hugging Face.
constexpr std::pair<std::string_view, std::string_view> kForeignNames[] = {
    {"gpt2", "124M"}, {"gpt2-small", "124M"}, {"gpt2-medium", "355M"}, {"gpt2-large", "774M"}, {"gpt2-xl", "1.5B"}};

}  // namespace

void ModelPreset::apply_to(ModelConfig& config) const {
  config.set_kind(kind);
  config.num_layers = num_layers;
  config.hidden_size = hidden_size;
  config.num_attention_heads = num_attention_heads;
  config.num_key_value_heads = num_key_value_heads;
  config.head_dim = head_dim;
  config.intermediate_size = intermediate_size;
  config.window = window;
  if (tied) config.untied_output = false;
  if (rotary_base > 0) config.rotary.base = rotary_base;
  if (epsilon > 0) config.layernorm_epsilon = epsilon;
  if (llama3_factor == 0) return;
  config.rotary.scaling = RotaryConfig::Scaling::kLlama3;
  config.rotary.factor = llama3_factor;
}

std::span<const ModelPreset> model_presets() { return kPresets; }

const ModelPreset& find_model_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelPreset& preset : kPresets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const auto foreign = std::ranges::find(kForeignNames, name, &std::pair<std::string_view, std::string_view>::first);
  throw_user_error("there is no model preset '{}' (--model); {}there are: {}", name,
                   foreign == std::end(kForeignNames)
                       ? ""
                       : fmt::format("Hugging Face's model of this name is {} here, to train from random weights "
                                     "(--finetune DIR starts from trained ones); ",
                                     foreign->second),
                   fmt::join(names, ", "));
}

}  // namespace teratron
