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
