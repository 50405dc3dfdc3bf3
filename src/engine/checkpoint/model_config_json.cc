#include "checkpoint/model_config_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/json_fields.h"
#include "model/family.h"
#include "model/label_names.h"

namespace teratron {
namespace {

using Json = nlohmann::json;

enum class Decides { kFunction, kFamily, kHead, kTraining };

constexpr const char *kNumLabels = "num_labels", *kLabelNames = "label_names", *kEmbeddingDropout = "embedding_dropout",
                     *kNoScaledInit = "no_scaled_init", *kAdapters = "adapters", *kVectors = "vectors";

// Every field: its name in the file, a pointer to it, and its effect. Those with kFamily are in the file where they
// differ from what the family's models have in common.
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
  field("layernorm_placement", &ModelConfig::norm_placement, Decides::kFunction);
  field("num_key_value_heads", &ModelConfig::num_key_value_heads, Decides::kFamily);
  field("head_dim", &ModelConfig::head_dim, Decides::kFamily);
  field("intermediate_size", &ModelConfig::intermediate_size, Decides::kFamily);
  field("norm", &ModelConfig::norm, Decides::kFamily);
  field("gated_mlp", &ModelConfig::gated_mlp, Decides::kFamily);
  field("linear_bias", &ModelConfig::linear_bias, Decides::kFamily);
  field("qkv_bias", &ModelConfig::qkv_bias, Decides::kFamily);
  field("head_norms", &ModelConfig::head_norms, Decides::kFamily);
  field("untied_output", &ModelConfig::untied_output, Decides::kFamily);
  field("window", &ModelConfig::window, Decides::kFamily);
  field("rotary_share", &ModelConfig::rotary_share, Decides::kFamily);
  field("rotary", &ModelConfig::rotary, Decides::kFamily);
  field("head", &ModelConfig::head, Decides::kHead);
  field(kNumLabels, &ModelConfig::num_labels, Decides::kHead);
  field(kLabelNames, &ModelConfig::label_names, Decides::kHead);
  field("make_vocab_size_divisible_by", &ModelConfig::make_vocab_size_divisible_by, Decides::kTraining);
  field("hidden_dropout", &ModelConfig::hidden_dropout, Decides::kTraining);
  field(kEmbeddingDropout, &ModelConfig::embedding_dropout, Decides::kTraining);
  field("attention_dropout", &ModelConfig::attention_dropout, Decides::kTraining);
  field("init_method_std", &ModelConfig::init_method_std, Decides::kTraining);
  field(kNoScaledInit, &ModelConfig::no_scaled_init, Decides::kTraining);
}

// The values of a choice, as files name them.
template <class Value>
using Named = std::pair<std::string_view, Value>;
constexpr std::array kActivations = {Named<Activation>{"gelu_tanh", Activation::kGeluTanh},
                                     Named<Activation>{"gelu_erf", Activation::kGeluErf},
                                     Named<Activation>{"silu", Activation::kSilu}};
constexpr std::array kPlacements = {Named<NormPlacement>{"pre", NormPlacement::kPre},
                                    Named<NormPlacement>{"post", NormPlacement::kPost},
                                    Named<NormPlacement>{"parallel", NormPlacement::kParallel}};
constexpr std::array kNorms = {Named<NormKind>{"layer", NormKind::kLayer}, Named<NormKind>{"rms", NormKind::kRms}};
constexpr std::array kPairs = {Named<RotaryPairs>{"halves", RotaryPairs::kHalves},
                               Named<RotaryPairs>{"neighbours", RotaryPairs::kNeighbours}};
using Scaling = RotaryConfig::Scaling;
constexpr std::array kScalings = {Named<Scaling>{"none", Scaling::kNone}, Named<Scaling>{"linear", Scaling::kLinear},
                                  Named<Scaling>{"llama3", Scaling::kLlama3},
                                  Named<Scaling>{"dynamic", Scaling::kDynamic}, Named<Scaling>{"yarn", Scaling::kYarn}};
constexpr std::array kHeads = {Named<ModelHead>{"pretraining", ModelHead::kPretraining},
                               Named<ModelHead>{"none", ModelHead::kNone},
                               Named<ModelHead>{"classification", ModelHead::kClassification},
                               Named<ModelHead>{"choice", ModelHead::kChoice},
                               Named<ModelHead>{"spans", ModelHead::kSpans},
                               Named<ModelHead>{"tokens", ModelHead::kTokens},
                               Named<ModelHead>{"vectors", ModelHead::kVectors}};

constexpr const auto& values_of(Activation) { return kActivations; }
constexpr const auto& values_of(NormPlacement) { return kPlacements; }
constexpr const auto& values_of(NormKind) { return kNorms; }
constexpr const auto& values_of(RotaryPairs) { return kPairs; }
constexpr const auto& values_of(Scaling) { return kScalings; }
constexpr const auto& values_of(ModelHead) { return kHeads; }
constexpr const auto& values_of(Pooling) { return kPoolingNames; }

Json to_json(std::int64_t value) { return value; }
Json to_json(double value) { return value; }
Json to_json(bool value) { return value; }
Json to_json(const std::vector<std::string>& value) { return value; }
Json to_json(ModelKind value) { return family_of(value).name; }
template <class Value>
Json to_json(Value value) {
  for (const auto& [name, named] : values_of(value)) {
    if (named == value) return name;
  }
  throw InternalError("a value of a model's configuration that has no name");
}

Json to_json(const RotaryConfig& value) {
  return {{"base", value.base},
          {"pairs", to_json(value.pairs)},
          {"scaling", to_json(value.scaling)},
          {"factor", value.factor},
          {"low_frequency", value.low_frequency},
          {"high_frequency", value.high_frequency},
          {"first_positions", value.first_positions},
          {"attention", value.attention},
          {"whole_pairs", value.whole_pairs}};
}

void read_field(std::int64_t& to, const JsonFields& fields, std::string_view key) {
  if (key == kNumLabels && !fields.has(key)) return;  // older checkpoints have no heads of tasks
  to = fields.integer(key, 1, kLargestSize);
}

void read_field(double& to, const JsonFields& fields, std::string_view key) {
  if (key == kEmbeddingDropout && !fields.has(key)) return;  // absent where hidden_dropout holds
  to = fields.number(key);
}

void read_field(bool& to, const JsonFields& fields, std::string_view key) {
  if (fields.has(key)) to = fields.boolean(key);  // older checkpoints lack it
}

// Labels may have no names.
void read_field(std::vector<std::string>& to, const JsonFields& fields, std::string_view key) {
  if (!fields.has(key)) return;
  const Json& list = fields[key];
  const auto is_text = [](const Json& one) { return one.is_string(); };
  if (!list.is_array() || !std::ranges::all_of(list, is_text)) fields.throw_not(key, "a list of texts");
  to = list.get<std::vector<std::string>>();
}

// Checkpoints from before there were several families do not say which one they hold.
void read_field(ModelKind& to, const JsonFields& fields, std::string_view key) {
  if (!fields.has(key)) return;
  const Family* const family = find_family(fields.string(key));
  if (family == nullptr) fields.throw_not(key, fmt::format("a kind of model: {}", fmt::join(family_names(), ", ")));
  to = family->kind;
}

// Older checkpoints have one activation to choose, and no other choices.
template <class Value>
void read_field(Value& to, const JsonFields& fields, std::string_view key) {
  if (!std::is_same_v<Value, Activation> && !fields.has(key)) return;
  const std::string text = fields.string(key);
  std::vector<std::string_view> names;
  for (const auto& [name, value] : values_of(to)) {
    if (name == text) {
      to = value;
      return;
    }
    names.push_back(name);
  }
  fields.throw_not(key, fmt::format("{}", fmt::join(names, " or ")));
}

void read_field(RotaryConfig& to, const JsonFields& fields, std::string_view key) {
  const JsonFields rotary = fields.fields_of(key);
  read_field(to.base, rotary, "base");
  read_field(to.pairs, rotary, "pairs");
  read_field(to.scaling, rotary, "scaling");
  read_field(to.factor, rotary, "factor");
  read_field(to.low_frequency, rotary, "low_frequency");
  read_field(to.high_frequency, rotary, "high_frequency");
  read_field(to.first_positions, rotary, "first_positions");
  if (rotary.has("attention")) read_field(to.attention, rotary, "attention");  // older checkpoints have no YaRN
  read_field(to.whole_pairs, rotary, "whole_pairs");
}

Json to_json(const AdapterConfig& value, const ModelConfig& model) {
  return {{"rank", value.rank},
          {"alpha", value.alpha},
          {"dropout", value.dropout},
          {"rank_stabilized", value.rank_stabilized},
          {"targets", adapter_target_names(model)}};
}

void read_adapters(ModelConfig& config, const JsonFields& fields) {
  config.adapters.rank = fields.integer("rank", 1, kLargestSize);
  config.adapters.alpha = fields.number("alpha");
  config.adapters.dropout = fields.number("dropout");
  config.adapters.rank_stabilized = fields.boolean("rank_stabilized");
  std::vector<std::string> names;
  read_field(names, fields, "targets");
  config.adapters.targets = adapter_targets(config, names);
}

Json to_json(const TextVectors& value) {
  return {{"pooling", to_json(value.pooling)},
          {"texts", value.texts},
          {"tokens", value.tokens},
          {"are_similarities", value.are_similarities}};
}

void read_vectors(TextVectors& to, const JsonFields& fields) {
  read_field(to.pooling, fields, "pooling");
  to.texts = fields.integer("texts", 1, kLargestSize);
  to.tokens = fields.integer("tokens", 0, kLargestSize);
  to.are_similarities = fields.boolean("are_similarities");
}

ModelConfig common_to_family(ModelKind kind) {
  ModelConfig config;
  config.set_kind(kind);
  return config;
}

}  // namespace

Json model_config_to_json(const ModelConfig& config) {
  Json json = Json::object();
  const ModelConfig common = common_to_family(config.kind);
  visit_fields([&](const char* name, auto member, Decides decides) {
    if (decides == Decides::kFamily && config.*member == common.*member) return;
    if (std::string_view(name) != kEmbeddingDropout || config.embedding_dropout != 1)
      json[name] = to_json(config.*member);
  });
  if (!config.no_scaled_init) json.erase(kNoScaledInit);
  if (config.label_names.empty()) json.erase(kLabelNames);
  if (config.adapters.active()) json[kAdapters] = to_json(config.adapters, config);
  if (config.head == ModelHead::kVectors) json[kVectors] = to_json(config.vectors);
  return json;
}

ModelConfig model_config_from_json(const Json& json, const std::filesystem::path& path) {
  const JsonFields fields(json, path);
  ModelKind kind = ModelConfig().kind;
  read_field(kind, fields, "model_type");
  ModelConfig config = common_to_family(kind);
  visit_fields([&](const char* name, auto member, Decides decides) {
    if (decides != Decides::kFamily || fields.has(name)) read_field(config.*member, fields, name);
  });
  if (fields.has(kAdapters)) read_adapters(config, fields.fields_of(kAdapters));
  if (fields.has(kVectors)) read_vectors(config.vectors, fields.fields_of(kVectors));
  std::vector<std::string> faults = config.faults().texts();
  const double layer = faults.empty() ? TransformerLayer(config.layer_config(), 0, {}).work().product_operations() : 0;
  const double weights = static_cast<double>(config.num_layers) * layer / 2;
  if (weights > 1e18) faults.emplace_back("it would have more weights than can be counted");
  if (!faults.empty()) throw_user_error("'{}' describes no model: {}", path.string(), fmt::join(faults, "; "));
  return config;
}

std::vector<std::string> differences(const ModelConfig& stored, const ModelConfig& asked, bool heads) {
  std::vector<std::string> found;
  visit_fields([&](const char* name, auto member, Decides decides) {
    if (decides == Decides::kTraining || stored.*member == asked.*member) return;
    if (decides == Decides::kHead && !heads) return;
    const bool is_of_labels = std::string_view(name) == kNumLabels || std::string_view(name) == kLabelNames;
    if (is_of_labels && !tells_labels(asked.head)) return;
    // Labels in another order are the same function: the head's rows are taken by name.
    if (std::string_view(name) == kLabelNames && rows_by_label(stored.label_names, asked.label_names)) return;
    const Json there = to_json(stored.*member), here = to_json(asked.*member);
    found.push_back(fmt::format("{} is {} there, {} was asked for", name, there.dump(), here.dump()));
  });
  AdapterConfig adapters = stored.adapters;
  adapters.dropout = asked.adapters.dropout;
  if (adapters != asked.adapters) {
    const auto text = [](const ModelConfig& model) {
      return model.adapters.active() ? to_json(model.adapters, model).dump() : "none";
    };
    found.push_back(fmt::format("its adapters are {} there, {} were asked for", text(stored), text(asked)));
  }
  return found;
}

void check_same_model(const std::filesystem::path& folder, const ModelConfig& stored, const ModelConfig& asked,
                      bool heads) {
  const std::vector<std::string> found = differences(stored, asked, heads);
  if (!found.empty()) throw_user_error("'{}' holds another model: {}", folder.string(), fmt::join(found, "; "));
}

}  // namespace teratron
