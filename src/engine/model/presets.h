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
  // As ModelConfig has them; 0: its default, but for epsilon, which stays as it is.
  std::int64_t num_key_value_heads = 0, head_dim = 0, intermediate_size = 0;
  std::int64_t vocabulary = 0;  // of the published tokenizer; 0: Family::usual_vocabulary
  double rotary_base = 0, epsilon = 0;
  double llama3_factor = 0;  // of RotaryConfig::Scaling::kLlama3; 0: no scaling
  bool tied = false;         // of families whose output projection usually has a weight of its own
  std::int64_t window = 0;

  // Sets the family and the sizes.
  void apply_to(ModelConfig& config) const;
};

// tiny, GPT-2's published sizes, and those of the Megatron-LM paper: Table 1 (scaling) and Table 2 (evaluation), which
// differ in the heads of 8.3B, and the BERTs of Table 4 and Figure 7. Then the GPT-3 models that TeraPipe's paper runs,
// and published models of later families, whose sizes are those of their config.json.
std::span<const ModelPreset> model_presets();
const ModelPreset& find_model_preset(std::string_view name);  // UserError lists the names there are

}  // namespace teratron
