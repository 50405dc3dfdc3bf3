#include "model/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "base/error.h"
#include "model/adapters.h"
#include "model/bert_kind.h"
#include "model/family.h"
#include "model/make_model.h"

namespace teratron {
namespace {

// Bounds that, with kMostLayers, keep every product of sizes within 64 bits and token ids within 32.
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 20;
constexpr std::int64_t kMostTokens = (std::int64_t{1} << 31) - 1;

constexpr Flag kHiddenSize{"hidden-size"}, kHeads{"num-attention-heads"}, kKeyHeads{"num-query-groups"};

void need_probability(Faults& faults, Flag flag, double value) {
  constexpr double kMost = 1 - 0x1p-16;  // masks are drawn with 16 bits (ops/operations.h); more would drop everything
  faults.add_if(!(value >= 0 && value <= kMost), "{} is {}; it must be at least 0 and at most {:.5f}", flag, value,
                kMost);
}

// Back ends take such numbers in fp32.
bool is_positive(double value) {
  using Fp32 = std::numeric_limits<float>;
  return value >= Fp32::denorm_min() && value <= Fp32::max();
}

std::string trainable_poolings() {
  const auto can_be = [](const auto& named) { return can_be_trained(named.second); };
  return fmt::format("{}", fmt::join(kPoolingNames | std::views::filter(can_be) | std::views::keys, ", "));
}

// Adds faults of sizes of heads that do not fit each other.
void add_head_faults(const ModelConfig& model, Faults& faults) {
  const std::int64_t hidden = model.hidden_size, heads = model.num_attention_heads;
  if (model.head_dim == 0 && hidden >= 1 && hidden <= kMostFeatures && hidden % heads != 0) {
    const std::int64_t below = hidden / heads * heads, above = below + heads;
    faults.add("{} {} is not divisible by {} {}; nearest that are: {}{}", kHiddenSize, hidden, kHeads, heads,
               below > 0 ? fmt::format("{}, ", below) : "", above);
  }
  if (!faults.empty()) return;
  faults.add_if(heads % model.key_value_heads() != 0, "{} {} is not divisible by {} {}: as many heads share each",
                kHeads, heads, kKeyHeads, model.key_value_heads());
  const bool is_share = model.rotary_share >= 0 && model.rotary_share <= 1;
  faults.add_if(!is_share, "the share of a head with rotary positions is {}; it must be between 0 and 1",
                model.rotary_share);
  if (!is_share) return;
  const std::int64_t turned = model.layer_config().rotary.elements;
  faults.add_if(turned % 2 != 0 || (turned == 0 && model.rotary_share > 0),
                "{} of a head's {} elements have rotary positions; it must be an even number, and 2 at least", turned,
                model.head_size());
  const RotaryConfig& rotary = model.rotary;
  faults.add_if(!is_positive(rotary.factor) || !is_positive(rotary.attention),
                "the factors of rotary positions must be above 0, and no larger than fp32 holds");
  faults.add_if(!(rotary.low_frequency > 0 && rotary.high_frequency > rotary.low_frequency),
                "the bounds of scaled rotary positions, {} and {}, must be above 0, and the second above the first",
                rotary.low_frequency, rotary.high_frequency);
  faults.add_if(rotary.scaling == RotaryConfig::Scaling::kYarn && !(rotary.base > 1), "{} must be above 1 with YaRN",
                Flag{"rotary-base"});
}

void add_sharing_faults(const ModelConfig& model, std::int64_t ranks, Faults& faults) {
  if (ranks < 1 || model.splits_over(ranks)) return;
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= model.num_attention_heads; ++size) {
    if (model.splits_over(size)) sizes.push_back(size);
  }
  faults.add("{} {} cannot be shared by {} {} ranks: heads stay whole; sizes that work: {}", kHeads,
             model.num_attention_heads, Flag{"tensor-model-parallel-size"}, ranks, fmt::join(sizes, ", "));
}

}  // namespace

void need_positive(Faults& faults, Flag flag, double value) {
  faults.add_if(!is_positive(value), "{} is {}; it must be above 0, and a number that fp32 holds", flag, value);
}

double init_std_by_width(std::int64_t hidden_size) {
  constexpr double kUsual = 0.02, kWidth = 1024;
  const auto width = static_cast<double>(std::max<std::int64_t>(hidden_size, 1));
  return width < kWidth ? kUsual * std::sqrt(kWidth / width) : kUsual;
}

bool ModelConfig::splits_over(std::int64_t ranks) const {
  const std::int64_t key_heads = std::max<std::int64_t>(1, key_value_heads());
  const bool keys = key_heads % ranks == 0 || ranks % key_heads == 0;
  return num_attention_heads % ranks == 0 && keys && ffn_hidden_size() % ranks == 0;
}

TransformerLayerConfig ModelConfig::layer_config() const {
  RotaryConfig positions = rotary;
  positions.elements = static_cast<std::int64_t>(rotary_share * static_cast<double>(head_size()));
  return {.hidden_size = hidden_size,
          .num_attention_heads = num_attention_heads,
          .ffn_hidden_size = ffn_hidden_size(),
          .num_key_value_heads = key_value_heads(),
          .head_size = head_size(),
          .num_layers = num_layers,
          .norm = norm,
          .layernorm_epsilon = layernorm_epsilon,
          .hidden_dropout = hidden_dropout,
          .attention_dropout = attention_dropout,
          .activation = activation,
          .norm_placement = norm_placement,
          .causal = family().continues_text,
          .scaled_init = !no_scaled_init,
          .gated = gated_mlp,
          .bias = linear_bias,
          .qkv_bias = qkv_bias,
          .head_norms = head_norms,
          .window = window,
          .rotary = positions,
          .adapters = adapters};
}

std::vector<TransformerLayer> ModelConfig::make_layers(GroupRank group) const {
  const std::vector<std::string> all = faults(group.size).texts();
  if (!all.empty()) throw UserError(fmt::format("{}", fmt::join(all, "\n")));
  std::vector<TransformerLayer> layers;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) layers.emplace_back(layer_config(), layer, group);
  return layers;
}

bool ModelConfig::has_pooler() const {
  const bool reads_tokens = head == ModelHead::kSpans || head == ModelHead::kTokens || head == ModelHead::kVectors;
  if (family().continues_text || reads_tokens) return false;
  const BertKind& its = bert_kind(kind);
  if (head == ModelHead::kPretraining) return its.orders_sentences;
  return head != ModelHead::kNone || its.encoder_has_pooler;
}

const Family& ModelConfig::family() const { return family_of(kind); }

void ModelConfig::set_kind(ModelKind new_kind) {
  kind = new_kind;
  family().set_function(*this);
}

void ModelConfig::set_pretraining_head() {
  const ModelConfig defaults;
  head = ModelHead::kPretraining;
  num_labels = defaults.num_labels;
  label_names.clear();
}

namespace {

std::int64_t count_parameters(const ModelConfig& config, bool frozen) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : declared_parameters(config)) {
    if (parameter.frozen && !frozen) continue;
    const std::int64_t columns = parameter.shape.elements() / parameter.shape[0];
    sum += (parameter.shape[0] - parameter.padding_rows) * columns;
  }
  return sum;
}

}  // namespace

std::int64_t ModelConfig::parameters() const { return count_parameters(*this, /*frozen=*/true); }

std::int64_t ModelConfig::trained_parameters() const { return count_parameters(*this, /*frozen=*/false); }

double ModelConfig::training_flops_per_token(std::int64_t sequence_length) const {
  const auto tokens = static_cast<double>(sequence_length);
  const double layer = TransformerLayer(layer_config(), 0, {}).work().training_operations(tokens, 0);
  const double of_head = adapters.active() ? 2 : 3;  // a frozen one has no weight gradient
  return static_cast<double>(num_layers) * layer + of_head * family().head_operations(*this, tokens);
}

Faults ModelConfig::faults(std::int64_t tensor_parallel_size) const {
  const bool continues = family().continues_text;
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
  faults.add_if(!continues && embedding_dropout != 1,
                "{} is for models that continue text; what follows {}'s embedding is {}", kEmbeddingDropout,
                family().title, Flag{"hidden-dropout"});
  faults.add_if(continues && norm_placement == NormPlacement::kPost,
                "{} post is for BERT ({} bert); {}'s norms come first", Flag{"layernorm-placement"}, Flag{"model-type"},
                family().title);
  faults.add_if(!continues && norm_placement == NormPlacement::kParallel,
                "{} parallel is for models that continue text", Flag{"layernorm-placement"});
  faults.add_if(continues && (is_task_head(head) || head == ModelHead::kVectors),
                "the heads of tasks are for BERT ({} bert)", Flag{"model-type"});
  faults.add_if(vectors.texts > 1 && !can_be_trained(vectors.pooling), "{} {} cannot be trained; these can: {}",
                Flag{"pooling"}, name_of(vectors.pooling), trainable_poolings());
  faults.add_if(vectors.texts < 1 || vectors.texts > 3, "an example has {} texts; there must be 1 to 3", vectors.texts);
  faults.add_if(head == ModelHead::kClassification && (num_labels < 1 || num_labels > kMostFeatures),
                "a text has one of {} labels; there must be 1 at least, which is a number, and {} at most", num_labels,
                kMostFeatures);
  faults.add_if(head == ModelHead::kTokens && (num_labels < 2 || num_labels > kMostFeatures),
                "a token has one of {} labels; there must be 2 at least, and {} at most", num_labels, kMostFeatures);
  faults.add_if(!label_names.empty() && std::ssize(label_names) != num_labels, "{} labels have {} names", num_labels,
                label_names.size());
  need_positive(faults, {"layernorm-epsilon"}, layernorm_epsilon);
  need_positive(faults, {"init-method-std"}, init_method_std);
  faults.need_between(kKeyHeads, num_key_value_heads, 0, kMostFeatures);
  faults.need_between({"kv-channels"}, head_dim, 0, kMostFeatures);
  faults.need_between({"ffn-hidden-size"}, intermediate_size, 0, kMostFeatures);
  faults.need_between({"window-size"}, window, 0, kMostTokens);
  faults.add_if(!(rotary.base >= 1 && is_positive(rotary.base)),
                "{} is {}; it must be at least 1, and a number that fp32 holds", Flag{"rotary-base"}, rotary.base);
  add_adapter_faults(*this, faults);
  if (num_attention_heads < 1 || num_attention_heads > kMostFeatures) return faults;
  faults.add_if(!continues && (window > 0 || untied_output), "{} and {} are for models that continue text",
                Flag{"window-size"}, Flag{"untie-embeddings-and-output-weights"});
  faults.add_if(!continues && rotary_share > 0, "rotary positions are for models that continue text");
  add_head_faults(*this, faults);
  const auto is_size = [](std::int64_t size) { return size >= 0 && size <= kMostFeatures; };
  if (!is_size(hidden_size) || !is_size(num_key_value_heads) || !is_size(intermediate_size)) return faults;
  add_sharing_faults(*this, tensor_parallel_size, faults);
  return faults;
}

}  // namespace teratron
