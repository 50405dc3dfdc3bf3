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

// Later families train without dropout, unless it was asked for.
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

constexpr Family kFamilies[] = {
    {.kind = ModelKind::kGpt2,
     .name = "gpt2",
     .title = "GPT-2",
     .continues_text = true,
     .usual_vocabulary = 50257,
     .set_function = set_gpt2,
     .adapter_targets = kGpt2Targets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kBert,
     .name = "bert",
     .title = "BERT",
     .continues_text = false,
     .usual_vocabulary = 30522,
     .set_function = set_bert,
     .adapter_targets = {},
     .head_operations = bert_heads,
     .make = make_bert},
    {.kind = ModelKind::kLlama,
     .name = "llama",
     .title = "Llama",
     .continues_text = true,
     .usual_vocabulary = 32000,
     .set_function = set_llama,
     .adapter_targets = kLlamaTargets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kMistral,
     .name = "mistral",
     .title = "Mistral",
     .continues_text = true,
     .usual_vocabulary = 32000,
     .set_function = set_llama,
     .adapter_targets = kLlamaTargets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kQwen2,
     .name = "qwen2",
     .title = "Qwen 2",
     .continues_text = true,
     .usual_vocabulary = 151936,
     .set_function = set_qwen2,
     .adapter_targets = kLlamaTargets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kQwen3,
     .name = "qwen3",
     .title = "Qwen 3",
     .continues_text = true,
     .usual_vocabulary = 151936,
     .set_function = set_qwen3,
     .adapter_targets = kLlamaTargets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kGptNeox,
     .name = "gpt_neox",
     .title = "GPT-NeoX",
     .continues_text = true,
     .usual_vocabulary = 50304,
     .set_function = set_gpt_neox,
     .adapter_targets = kNeoxTargets,
     .head_operations = logits_of_all_tokens,
     .make = make_decoder},
    {.kind = ModelKind::kRoberta,
     .name = "roberta",
     .title = "RoBERTa",
     .continues_text = false,
     .usual_vocabulary = 50265,
     .set_function = set_later_bert,
     .adapter_targets = {},
     .head_operations = bert_heads,
     .make = make_bert},
    {.kind = ModelKind::kDistilBert,
     .name = "distilbert",
     .title = "DistilBERT",
     .continues_text = false,
     .usual_vocabulary = 30522,
     .set_function = set_later_bert,
     .adapter_targets = {},
     .head_operations = bert_heads,
     .make = make_bert},
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
