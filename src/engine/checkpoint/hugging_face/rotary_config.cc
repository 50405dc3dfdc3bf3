// Rotary positions in config.json. transformers 5 has rope_parameters, older ones rope_theta and rope_scaling.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"

namespace teratron {

void read_rotary(const JsonFields& fields, ModelConfig& model, Phrases& unsupported) {
  RotaryConfig& rotary = model.rotary;
  rotary.base = number_or(fields, "rope_theta", rotary.base);
  model.rotary_share = number_or(fields, "partial_rotary_factor", model.rotary_share);
  const char* const key = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!fields.has(key)) return;
  const JsonFields scaling = fields.fields_of(key);
  rotary.base = number_or(scaling, "rope_theta", rotary.base);
  model.rotary_share = number_or(scaling, "partial_rotary_factor", model.rotary_share);
  const char* const type_key = scaling.has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling.has(type_key) ? scaling.string(type_key) : "default";
  if (type == "default") return;
  if (type == "linear") {
    rotary.scaling = RotaryConfig::Scaling::kLinear;
  } else if (type == "llama3") {
    rotary.scaling = RotaryConfig::Scaling::kLlama3;
    rotary.low_frequency = scaling.number("low_freq_factor");
    rotary.high_frequency = scaling.number("high_freq_factor");
    rotary.first_positions = scaling.integer("original_max_position_embeddings", 1, kLargestSize);
  } else {
    unsupported.push_back(fmt::format("{} of type '{}' (there are default, linear and llama3)", key, type));
    return;
  }
  rotary.factor = scaling.number("factor");
}

nlohmann::ordered_json rotary_scaling(const RotaryConfig& rotary) {
  switch (rotary.scaling) {
    case RotaryConfig::Scaling::kNone: break;
    case RotaryConfig::Scaling::kLinear: return {{"rope_type", "linear"}, {"factor", rotary.factor}};
    case RotaryConfig::Scaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", rotary.factor},
              {"low_freq_factor", rotary.low_frequency},
              {"high_freq_factor", rotary.high_frequency},
              {"original_max_position_embeddings", rotary.first_positions}};
  }
  return nullptr;
}

}  // namespace teratron
