#include "model/family.h"

#include <algorithm>

#include "base/error.h"
#include "model/bert.h"
#include "model/decoder.h"

namespace teratron {
namespace {

std::unique_ptr<Model> make_decoder(const ModelConfig& config, GroupRank tensor, GroupRank stages) {
  return std::make_unique<Decoder>(config, tensor, stages);
}

std::unique_ptr<Model> make_bert(const ModelConfig& config, GroupRank tensor, GroupRank stages) {
  check_equal(stages.size, 1, "stages that share the vocabulary of a model that reads texts");
  return std::make_unique<Bert>(config, tensor);
}

double logits_of_all_tokens(const ModelConfig& config, double /*tokens*/) {
  return 2 * static_cast<double>(config.vocab_size) * static_cast<double>(config.hidden_size);
}

double bert_heads(const ModelConfig& config, double tokens) {
  // The share of a text's tokens that BERT predicts (Devlin et al., arXiv 1810.04805, section 3.1).
  constexpr double kMaskedShare = 0.15;
  const auto h = static_cast<double>(config.hidden_size), v = static_cast<double>(config.vocab_size);
  const auto logits = static_cast<double>(config.task_logits());
  const double pooler = config.has_pooler() ? h * h / tokens : 0;
  if (config.head == ModelHead::kPretraining) return 2 * (kMaskedShare * (h * h + v * h) + pooler);
  if (!is_task_head(config.head)) return 0;
  return 2 * (config.has_pooler() ? (h * h + logits * h) / tokens : logits * h);
}

void set_gpt2(ModelConfig& config) {
  const ModelConfig defaults;
  config.activation = Activation::kGeluTanh;
  config.norm_placement =
      config.norm_placement == NormPlacement::kParallel ? NormPlacement::kPre : config.norm_placement;
  config.norm = defaults.norm;
  config.gated_mlp = config.head_norms = config.untied_output = false;
  config.linear_bias = config.qkv_bias = true;
  config.window = 0;
  config.rotary = {};
  config.rotary_share = 0;
}

void set_bert(ModelConfig& config) {
  set_gpt2(config);
  config.activation = Activation::kGeluErf;
}

// Liu et al., arXiv 1907.11692; Sanh et al., arXiv 1910.01108. No such model has its norms first.
void set_later_bert(ModelConfig& config) {
  set_bert(config);
  config.norm_placement = NormPlacement::kPost;
}

// Later families train without dropout: the default rates become 0, and any other rate stays.
void leave_out_dropout(ModelConfig& config) {
  const ModelConfig defaults;
  if (config.hidden_dropout == defaults.hidden_dropout) config.hidden_dropout = 0;
  if (config.attention_dropout == defaults.attention_dropout) config.attention_dropout = 0;
}

// Touvron et al., arXiv 2302.13971.
void set_llama(ModelConfig& config) {
  set_gpt2(config);
  config.activation = Activation::kSilu;
  config.norm = NormKind::kRms;
  config.gated_mlp = config.untied_output = true;
  config.linear_bias = config.qkv_bias = false;
  config.rotary_share = 1;
  leave_out_dropout(config);
}

void set_qwen2(ModelConfig& config) {
  set_llama(config);
  config.qkv_bias = true;
}

void set_qwen3(ModelConfig& config) {
  set_llama(config);
  config.head_norms = true;
}

// Black et al., arXiv 2204.06745; Pythia, arXiv 2304.01373.
void set_gpt_neox(ModelConfig& config) {
  set_gpt2(config);
  config.activation = Activation::kGeluErf;
  config.norm_placement = NormPlacement::kParallel;
  config.untied_output = true;
  config.rotary_share = 0.25;
  leave_out_dropout(config);
}

using Target = AdapterConfig::Target;
constexpr AdapterTarget kGpt2Targets[] = {
    {"c_attn", Target::kPacked}, {"c_proj", Target::kOutput | Target::kDown}, {"c_fc", Target::kUp}};
constexpr AdapterTarget kLlamaTargets[] = {
    {"q_proj", Target::kQuery},   {"k_proj", Target::kKey}, {"v_proj", Target::kValue},  {"o_proj", Target::kOutput},
    {"gate_proj", Target::kGate}, {"up_proj", Target::kUp}, {"down_proj", Target::kDown}};
constexpr AdapterTarget kNeoxTargets[] = {{"query_key_value", Target::kPacked},
                                          {"dense", Target::kOutput},
                                          {"dense_h_to_4h", Target::kUp},
                                          {"dense_4h_to_h", Target::kDown}};

constexpr Family decoder(ModelKind kind, std::string_view name, std::string_view title, std::int64_t vocabulary,
                         void (*set)(ModelConfig&), std::span<const AdapterTarget> targets) {
  return {.kind = kind,
          .name = name,
          .title = title,
          .continues_text = true,
          .usual_vocabulary = vocabulary,
          .set_function = set,
          .adapter_targets = targets,
          .head_operations = logits_of_all_tokens,
          .make = make_decoder};
}

constexpr Family encoder(ModelKind kind, std::string_view name, std::string_view title, std::int64_t vocabulary,
                         void (*set)(ModelConfig&)) {
  return {.kind = kind,
          .name = name,
          .title = title,
          .continues_text = false,
          .usual_vocabulary = vocabulary,
          .set_function = set,
          .adapter_targets = {},
          .head_operations = bert_heads,
          .make = make_bert};
}

constexpr Family kFamilies[] = {
    decoder(ModelKind::kGpt2, "gpt2", "GPT-2", 50257, set_gpt2, kGpt2Targets),
    encoder(ModelKind::kBert, "bert", "BERT", 30522, set_bert),
    decoder(ModelKind::kLlama, "llama", "Llama", 32000, set_llama, kLlamaTargets),
    decoder(ModelKind::kMistral, "mistral", "Mistral", 32000, set_llama, kLlamaTargets),
    decoder(ModelKind::kQwen2, "qwen2", "Qwen 2", 151936, set_qwen2, kLlamaTargets),
    decoder(ModelKind::kQwen3, "qwen3", "Qwen 3", 151936, set_qwen3, kLlamaTargets),
    decoder(ModelKind::kGptNeox, "gpt_neox", "GPT-NeoX", 50304, set_gpt_neox, kNeoxTargets),
    encoder(ModelKind::kRoberta, "roberta", "RoBERTa", 50265, set_later_bert),
    encoder(ModelKind::kDistilBert, "distilbert", "DistilBERT", 30522, set_later_bert),
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family& family_of(ModelKind kind) {
  const auto found = std::ranges::find(kFamilies, kind, &Family::kind);
  check(found != std::end(kFamilies), "a model of a family of the table");
  return *found;
}

const Family& encoder_family() { return family_of(ModelKind::kBert); }

const Family* find_family(std::string_view name) {
  const auto found = std::ranges::find(kFamilies, name, &Family::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.name);
  return names;
}

}  // namespace teratron
