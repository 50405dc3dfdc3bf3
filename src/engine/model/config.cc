#include "model/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::array<std::pair<std::string_view, ModelKind>, 2> kKinds = {
    {{"gpt2", ModelKind::kGpt2}, {"bert", ModelKind::kBert}}};

constexpr std::array<ModelPreset, 19> kPresets = {{
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
}};

// Names at Hugging Face.
constexpr std::pair<std::string_view, std::string_view> kForeignNames[] = {
    {"gpt2", "124M"}, {"gpt2-small", "124M"}, {"gpt2-medium", "355M"}, {"gpt2-large", "774M"}, {"gpt2-xl", "1.5B"}};

// Bounds that, with kMostLayers, keep every product of sizes within 64 bits and token ids within 32.
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 20;
constexpr std::int64_t kMostTokens = (std::int64_t{1} << 31) - 1;

// The share of a text's tokens that BERT predicts (Devlin et al., arXiv 1810.04805, section 3.1).
constexpr double kMaskedShare = 0.15;

void need_probability(Faults& faults, Flag flag, double value) {
  constexpr double kMost = 1 - 0x1p-16;  // masks are drawn with 16 bits (ops/operations.h); more would drop everything
  faults.add_if(!(value >= 0 && value <= kMost), "{} is {}; it must be at least 0 and at most {:.5f}", flag, value,
                kMost);
}

}  // namespace

std::string_view name_of(ModelKind kind) {
  for (const auto& [name, named] : kKinds) {
    if (named == kind) return name;
  }
  return "";
}

std::vector<std::string_view> model_kind_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, kind] : kKinds) names.push_back(name);
  return names;
}

std::optional<ModelKind> find_model_kind(std::string_view name) {
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

double init_std_by_width(std::int64_t hidden_size) {
  constexpr double kUsual = 0.02, kWidth = 1024;
  const auto width = static_cast<double>(std::max<std::int64_t>(hidden_size, 1));
  return width < kWidth ? kUsual * std::sqrt(kWidth / width) : kUsual;
}

TransformerLayerConfig ModelConfig::layer_config() const {
  return {.hidden_size = hidden_size,
          .num_attention_heads = num_attention_heads,
          .ffn_hidden_size = ffn_hidden_size(),
          .num_layers = num_layers,
          .layernorm_epsilon = layernorm_epsilon,
          .hidden_dropout = hidden_dropout,
          .attention_dropout = attention_dropout,
          .activation = activation,
          .norm_placement = norm_placement,
          .causal = kind == ModelKind::kGpt2,
          .scaled_init = !no_scaled_init};
}

std::vector<TransformerLayer> ModelConfig::make_layers(GroupRank group) const {
  const std::vector<std::string> all = faults(group.size).texts();
  if (!all.empty()) throw UserError(fmt::format("{}", fmt::join(all, "\n")));
  std::vector<TransformerLayer> layers;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) layers.emplace_back(layer_config(), layer, group);
  return layers;
}

void ModelConfig::set_kind(ModelKind new_kind) {
  kind = new_kind;
  activation = kind == ModelKind::kGpt2 ? Activation::kGeluTanh : Activation::kGeluErf;
}

void ModelConfig::set_pretraining_head() {
  const ModelConfig defaults;
  head = ModelHead::kPretraining;
  num_labels = defaults.num_labels;
  label_names.clear();
}

std::int64_t ModelConfig::parameters() const {
  const std::int64_t h = hidden_size;
  const std::int64_t layer = 12 * h * h + 13 * h;  // 4 h^2 + 4 h attention, 8 h^2 + 5 h MLP, 4 h norms
  const std::int64_t norm = 2 * h, body = num_layers * layer + (vocab_size + max_position_embeddings) * h + norm;
  if (kind == ModelKind::kGpt2) return body;
  const std::int64_t linear = h * h + h, types = 2 * h, pooler = has_pooler() ? linear : 0, order = 2 * h + 2;
  const std::int64_t heads = is_task_head(head)                ? task_logits() * (h + 1)
                             : head == ModelHead::kPretraining ? linear + norm + vocab_size + order
                                                               : 0;
  return body + types + pooler + heads;
}

double ModelConfig::training_flops_per_token(std::int64_t sequence_length) const {
  const auto l = static_cast<double>(num_layers), h = static_cast<double>(hidden_size);
  const auto v = static_cast<double>(vocab_size), s = static_cast<double>(sequence_length);
  if (kind == ModelKind::kGpt2) return 6 * (12 * l * h * h + v * h) + 6 * l * h * s;
  const auto logits = static_cast<double>(task_logits());
  double of_head = 0;
  if (head == ModelHead::kPretraining) of_head = kMaskedShare * (h * h + v * h) + h * h / s;
  if (is_task_head(head)) of_head = has_pooler() ? (h * h + logits * h) / s : logits * h;
  return 6 * (12 * l * h * h + of_head) + 12 * l * h * s;
}

Faults ModelConfig::faults(std::int64_t tensor_parallel_size) const {
  constexpr Flag kHiddenSize{"hidden-size"}, kHeads{"num-attention-heads"};
  Faults faults;
  faults.need_between({"num-layers"}, num_layers, 1, kMostLayers);
  faults.need_between(kHiddenSize, hidden_size, 1, kMostFeatures);
  faults.need_between(kHeads, num_attention_heads, 1, kMostFeatures);
  faults.need_between({"vocab-size"}, vocab_size, 1, kMostTokens);
  faults.need_between({"max-position-embeddings"}, max_position_embeddings, 1, kMostTokens);
  faults.need_between({"make-vocab-size-divisible-by"}, make_vocab_size_divisible_by, 1, kMostFeatures);
  need_probability(faults, {"hidden-dropout"}, hidden_dropout);
  need_probability(faults, {"attention-dropout"}, attention_dropout);
  constexpr Flag kEmbeddingDropout{"embedding-dropout"};
  need_probability(faults, kEmbeddingDropout, embedding_dropout == 1 ? 0 : embedding_dropout);
  faults.add_if(kind == ModelKind::kBert && embedding_dropout != 1,
                "{} is for GPT-2; what follows BERT's embedding is {}", kEmbeddingDropout, Flag{"hidden-dropout"});
  faults.add_if(kind == ModelKind::kGpt2 && norm_placement == NormPlacement::kPost,
                "{} post is for BERT ({} bert); GPT-2's norms come first", Flag{"layernorm-placement"},
                Flag{"model-type"});
  faults.add_if(kind == ModelKind::kGpt2 && is_task_head(head), "the heads of tasks are for BERT ({} bert)",
                Flag{"model-type"});
  faults.add_if(head == ModelHead::kClassification && (num_labels < 2 || num_labels > kMostFeatures),
                "a text has one of {} labels; there must be 2 at least, and {} at most", num_labels, kMostFeatures);
  faults.add_if(!label_names.empty() && std::ssize(label_names) != num_labels, "{} labels have {} names", num_labels,
                label_names.size());
  faults.add_if(!(layernorm_epsilon > 0), "{} must be above 0", Flag{"layernorm-epsilon"});
  faults.add_if(!(init_method_std > 0), "{} must be above 0", Flag{"init-method-std"});
  if (num_attention_heads < 1 || num_attention_heads > kMostFeatures) return faults;
  if (hidden_size >= 1 && hidden_size <= kMostFeatures && hidden_size % num_attention_heads != 0) {
    const std::int64_t below = hidden_size / num_attention_heads * num_attention_heads;
    const std::int64_t above = below + num_attention_heads;
    faults.add("{} {} is not divisible by {} {}; nearest that are: {}{}", kHiddenSize, hidden_size, kHeads,
               num_attention_heads, below > 0 ? fmt::format("{}, ", below) : "", above);
  }
  if (tensor_parallel_size >= 1 && num_attention_heads % tensor_parallel_size != 0) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t size = 1; size <= num_attention_heads; ++size) {
      if (num_attention_heads % size == 0) divisors.push_back(size);
    }
    faults.add("{} {} cannot be shared by {} {} ranks: heads stay whole; sizes that work: {}", kHeads,
               num_attention_heads, Flag{"tensor-model-parallel-size"}, tensor_parallel_size,
               fmt::join(divisors, ", "));
  }
  return faults;
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
