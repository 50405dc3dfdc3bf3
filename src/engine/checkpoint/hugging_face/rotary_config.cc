// Rotary positions in config.json. transformers 5 has rope_parameters, older ones rope_theta and rope_scaling.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"

namespace teratron {
namespace {

using Scaling = RotaryConfig::Scaling;

// Positions that the model was first trained on; transformers prefers the field outside.
std::int64_t first_positions(const JsonFields& fields, const JsonFields& scaling, const ModelConfig& model) {
  constexpr const char* kKey = "original_max_position_embeddings";
  if (fields.has(kKey)) return fields.integer(kKey, 1, kLargestSize);
  return scaling.has(kKey) ? scaling.integer(kKey, 1, kLargestSize) : model.max_position_embeddings;
}

void read_llama3(const JsonFields& scaling, RotaryConfig& rotary) {
  rotary.low_frequency = scaling.number("low_freq_factor");
  rotary.high_frequency = scaling.number("high_freq_factor");
}

// Factor of cosines and sines for sequences that are `scale` times as long.
double yarn_attention(double scale, double weight) { return scale <= 1 ? 1 : 0.1 * weight * std::log(scale) + 1; }

void read_yarn(const JsonFields& scaling, RotaryConfig& rotary) {
  const auto not_zero_or = [&](const char* key, double absent) {
    const double value = number_or(scaling, key, 0);
    return value == 0 ? absent : value;
  };
  rotary.high_frequency = not_zero_or("beta_fast", 32);
  rotary.low_frequency = not_zero_or("beta_slow", 1);
  rotary.whole_pairs = flag_or(scaling, "truncate", true);
  const double weight = number_or(scaling, "mscale", 0), weight_of_all = number_or(scaling, "mscale_all_dim", 0);
  const double usual = weight != 0 && weight_of_all != 0
                           ? yarn_attention(rotary.factor, weight) / yarn_attention(rotary.factor, weight_of_all)
                           : yarn_attention(rotary.factor, 1);
  rotary.attention = number_or(scaling, "attention_factor", usual);
}

void read_scaling(const JsonFields& fields, const char* key, ModelConfig& model, Phrases& unsupported) {
  if (!fields.has(key)) return;
  RotaryConfig& rotary = model.rotary;
  const JsonFields scaling = fields.fields_of(key);
  rotary.base = number_or(scaling, "rope_theta", rotary.base);
  model.rotary_share = number_or(scaling, "partial_rotary_factor", model.rotary_share);
  const char* const type_key = scaling.has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling.has(type_key) ? scaling.string(type_key) : "default";
  if (type == "default") return;
  if (type == "linear" || type == "dynamic") {
    rotary.scaling = type == "linear" ? Scaling::kLinear : Scaling::kDynamic;
    rotary.factor = scaling.number("factor");
    return;
  }
  rotary.first_positions = first_positions(fields, scaling, model);
  if (type == "llama3") {
    rotary.scaling = Scaling::kLlama3;
    rotary.factor = scaling.number("factor");
    read_llama3(scaling, rotary);
  } else if (type == "yarn") {
    rotary.scaling = Scaling::kYarn;
    rotary.factor =
        number_or(scaling, "factor",
                  static_cast<double>(model.max_position_embeddings) / static_cast<double>(rotary.first_positions));
    read_yarn(scaling, rotary);
  } else {
    unsupported.push_back(
        fmt::format("{} of type '{}' (there are default, linear, dynamic, llama3 and yarn)", key, type));
  }
}

}  // namespace

void read_rotary(const JsonFields& fields, ModelConfig& model, Phrases& unsupported) {
  model.rotary.base = number_or(fields, "rope_theta", model.rotary.base);
  model.rotary_share = number_or(fields, "partial_rotary_factor", model.rotary_share);
  ModelConfig other = model;
  read_scaling(fields, fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling", model, unsupported);
  if (!fields.has("rope_parameters") || !fields.has("rope_scaling")) return;
  Phrases others_faults;
  read_scaling(fields, "rope_scaling", other, others_faults);
  // transformers takes this one, with the usual base where it has none.
  if (other.rotary != model.rotary || other.rotary_share != model.rotary_share || !others_faults.empty()) {
    unsupported.push_back("rope_scaling beside other rope_parameters (write all of it into rope_parameters)");
  }
}

nlohmann::ordered_json rotary_scaling(const RotaryConfig& rotary) {
  switch (rotary.scaling) {
    case Scaling::kNone: break;
    case Scaling::kLinear: return {{"rope_type", "linear"}, {"factor", rotary.factor}};
    case Scaling::kDynamic: return {{"rope_type", "dynamic"}, {"factor", rotary.factor}};
    case Scaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", rotary.factor},
              {"low_freq_factor", rotary.low_frequency},
              {"high_freq_factor", rotary.high_frequency},
              {"original_max_position_embeddings", rotary.first_positions}};
    case Scaling::kYarn:
      return {{"rope_type", "yarn"},
              {"factor", rotary.factor},
              {"beta_fast", rotary.high_frequency},
              {"beta_slow", rotary.low_frequency},
              {"attention_factor", rotary.attention},
              {"truncate", rotary.whole_pairs},
              {"original_max_position_embeddings", rotary.first_positions}};
  }
  return nullptr;
}

}  // namespace teratron
