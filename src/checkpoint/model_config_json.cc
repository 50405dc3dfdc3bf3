#include "checkpoint/model_config_json.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/json_fields.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

enum class Decides { kFunction, kTraining };

// Every field: its name in the file, a pointer to it, and what it decides.
template <class Visitor>
void visit_fields(const Visitor& field) {
  field("model_type", &ModelConfig::kind, Decides::kFunction);
  field("num_layers", &ModelConfig::num_layers, Decides::kFunction);
  field("hidden_size", &ModelConfig::hidden_size, Decides::kFunction);
  field("num_attention_heads", &ModelConfig::num_attention_heads, Decides::kFunction);
  field("vocab_size", &ModelConfig::vocab_size, Decides::kFunction);
  field("max_position_embeddings", &ModelConfig::max_position_embeddings, Decides::kFunction);
  field("activation", &ModelConfig::activation, Decides::kFunction);
  field("layernorm_epsilon", &ModelConfig::layernorm_epsilon, Decides::kFunction);
  field("make_vocab_size_divisible_by", &ModelConfig::make_vocab_size_divisible_by, Decides::kTraining);
  field("hidden_dropout", &ModelConfig::hidden_dropout, Decides::kTraining);
  field("attention_dropout", &ModelConfig::attention_dropout, Decides::kTraining);
  field("init_method_std", &ModelConfig::init_method_std, Decides::kTraining);
}

Json to_json(std::int64_t value) { return value; }
Json to_json(double value) { return value; }
Json to_json(Activation value) { return name_of(value); }
Json to_json(ModelKind value) { return name_of(value); }

void read_field(std::int64_t& to, const JsonFields& fields, std::string_view key) {
  to = fields.integer(key, 1, kLargestSize);
}

void read_field(double& to, const JsonFields& fields, std::string_view key) { to = fields.number(key); }

void read_field(Activation& to, const JsonFields& fields, std::string_view key) {
  const std::string name = fields.string(key);
  if (name == name_of(Activation::kGeluTanh)) {
    to = Activation::kGeluTanh;
  } else if (name == name_of(Activation::kGeluErf)) {
    to = Activation::kGeluErf;
  } else {
    fields.throw_not(key, "gelu_tanh or gelu_erf");
  }
}

// Checkpoints from before there were several kinds do not say which one they hold.
void read_field(ModelKind& to, const JsonFields& fields, std::string_view key) {
  if (!fields.has(key)) {
    to = ModelConfig().kind;
    return;
  }
  const std::optional<ModelKind> kind = find_model_kind(fields.string(key));
  if (!kind) fields.throw_not(key, fmt::format("a kind of model: {}", fmt::join(model_kind_names(), ", ")));
  to = *kind;
}

}  // namespace

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::kGeluTanh: return "gelu_tanh";
    case Activation::kGeluErf: return "gelu_erf";
    case Activation::kNone: break;
  }
  return "none";
}

Json model_config_to_json(const ModelConfig& config) {
  Json json = Json::object();
  visit_fields([&](const char* name, auto member, Decides) { json[name] = to_json(config.*member); });
  return json;
}

ModelConfig model_config_from_json(const Json& json, const std::filesystem::path& path) {
  const JsonFields fields(json, path);
  ModelConfig config;
  visit_fields([&](const char* name, auto member, Decides) { read_field(config.*member, fields, name); });
  std::vector<std::string> faults = config.faults().texts();
  const double weights = 12.0 * static_cast<double>(config.num_layers) * std::pow(config.hidden_size, 2);
  if (weights > 1e18) faults.emplace_back("it would have more weights than can be counted");
  if (!faults.empty()) throw_user_error("'{}' describes no model: {}", path.string(), fmt::join(faults, "; "));
  return config;
}

std::vector<std::string> differences(const ModelConfig& stored, const ModelConfig& asked) {
  std::vector<std::string> found;
  visit_fields([&](const char* name, auto member, Decides decides) {
    if (decides == Decides::kTraining || stored.*member == asked.*member) return;
    const Json there = to_json(stored.*member), here = to_json(asked.*member);
    found.push_back(fmt::format("{} is {} there, {} was asked for", name, there.dump(), here.dump()));
  });
  return found;
}

void check_same_model(const std::filesystem::path& folder, const ModelConfig& stored, const ModelConfig& asked) {
  const std::vector<std::string> found = differences(stored, asked);
  if (!found.empty()) throw_user_error("'{}' holds another model: {}", folder.string(), fmt::join(found, "; "));
}

}  // namespace teratron
