// Presets of models by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/config.h"

namespace teratron {

struct ModelPreset {
  std::string_view name;
  std::int64_t num_layers, hidden_size, num_attention_heads;
  std::string_view source;
  ModelKind kind = ModelKind::kGpt2;

  // Sets the family and the sizes.
  void apply_to(ModelConfig& config) const;
};

// tiny, GPT-2's published sizes, and those of the Megatron-LM paper: Table 1 (scaling) and Table 2 (evaluation), which
// differ in the heads of 8.3B, and the BERTs of Table 4 and Figure 7. Then the GPT-3 models that TeraPipe's paper runs.
std::span<const ModelPreset> model_presets();
const ModelPreset& find_model_preset(std::string_view name);  // UserError lists the names there are

}  // namespace teratron
