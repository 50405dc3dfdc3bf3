#include "settings/model_settings.h"

#include <fmt/ranges.h>

#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "model/family.h"
#include "model/presets.h"
#include "settings/adapter_settings.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) names.emplace_back(preset.name);
  return names;
}

// Applies presets and families one after another. What the one before changed and this one leaves (a rate of dropout,
// epsilon) is as it was before that, unless something else has set it since.
class PresetChanges {
 public:
  template <class Change>
  void apply(ModelConfig& config, const Change& change) {
    for (double ModelConfig::*value :
         {&ModelConfig::hidden_dropout, &ModelConfig::attention_dropout, &ModelConfig::layernorm_epsilon}) {
      if (after_ && config.*value == *after_.*value) config.*value = *before_.*value;
    }
    before_ = config;
    change();
    after_ = config;
  }

 private:
  std::optional<ModelConfig> before_, after_;  // the last change
};

// Lists the families that are pre-trained. The others are read, since fine-tuned runs record them.
void add_kind_field(FieldList& list, ModelSettings& s, const std::shared_ptr<PresetChanges>& changes) {
  std::vector<std::pair<std::string, ModelKind>> kinds;
  std::vector<std::string> listed;
  for (const Family& family : families()) {
    kinds.emplace_back(family.name, family.kind);
    if (family.continues_text || family.kind == encoder_family().kind) listed.emplace_back(family.name);
  }
  Field& field = list.add_choice("model-type", s.config.kind, kinds, "kind of model; a preset sets it too");
  field.value_name = fmt::format("{}", fmt::join(listed, "|"));
  field.known_values = std::move(listed);
  // The kind that the model has already leaves it as it is: a preset has positions of its own.
  std::get<Choice>(field.target).set = [&s, kinds, changes](std::size_t i) {
    if (kinds[i].second == s.config.kind) return;
    changes->apply(s.config, [&] { s.config.set_kind(kinds[i].second); });
  };
  field.is_preset = true;
  field.summarised();
}

}  // namespace

ModelSettings::ModelSettings() {
  config.vocab_size = 0;
  config.max_position_embeddings = 0;
}

bool ModelSettings::has_preset_shape() const {
  ModelConfig other = config;
  find_model_preset(preset).apply_to(other);
  return other.kind == config.kind && other.num_layers == config.num_layers &&
         other.layer_config() == config.layer_config();
}

bool ModelSettings::needs_preset() const {
  if (has_preset_shape()) return true;
  const ModelPreset& named = find_model_preset(preset);
  return named.kind == config.kind && named.llama3_factor > 0 && named.llama3_factor == config.rotary.factor &&
         config.rotary.scaling == RotaryConfig::Scaling::kLlama3;
}

ModelConfig ModelSettings::model_for(std::int64_t data_vocab_size) const {
  ModelConfig filled = config;
  if (filled.vocab_size == 0) filled.vocab_size = data_vocab_size;
  if (filled.max_position_embeddings == 0) filled.max_position_embeddings = seq_length;
  set_adapter_targets(filled, lora_targets);
  if (filled.init_method_std == kInitByWidth) filled.init_method_std = init_std_by_width(filled.hidden_size);
  return filled;
}

std::int64_t ModelSettings::vocabulary_size() const {
  if (!tokenizer.empty()) {
    const std::int64_t size = Tokenizer::load(tokenizer).vocab_size();
    if (config.vocab_size != 0 && config.vocab_size < size) {
      throw_user_error("--vocab-size {} is smaller than the tokenizer's vocabulary of {} in '{}'; leave it out",
                       config.vocab_size, size, tokenizer.string());
    }
    return size;
  }
  if (config.vocab_size == 0) {
    throw_user_error(
        "the vocabulary's size is unknown: give --tokenizer DIR (the one the data was made with) or "
        "--vocab-size N");
  }
  return config.vocab_size;
}

Faults ModelSettings::faults(std::int64_t tensor_parallel) const {
  constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();
  constexpr Flag kSeqLength{"seq-length"}, kPositions{"max-position-embeddings"};
  Faults faults;
  faults.need_between({"vocab-size"}, config.vocab_size, 0, kMostTokens);
  faults.need_between(kPositions, config.max_position_embeddings, 0, kMostTokens);
  faults.need_between(kSeqLength, seq_length, 1, kMostTokens);
  // ModelConfig has neither a 0 for "not given" nor kInitByWidth.
  const auto checked = [](std::int64_t size) { return size >= 1 && size <= kMostTokens ? size : 1; };
  ModelConfig rest = config;
  rest.vocab_size = checked(config.vocab_size);
  rest.max_position_embeddings = checked(config.max_position_embeddings);
  if (rest.init_method_std == kInitByWidth) rest.init_method_std = ModelConfig().init_method_std;
  faults.add(adapter_faults(rest, lora_targets));
  faults.add(rest.faults(tensor_parallel));
  faults.add_if(config.max_position_embeddings > 0 && seq_length > config.max_position_embeddings,
                "{} {} is more than {} {}; lower the first or raise the second", kSeqLength, seq_length, kPositions,
                config.max_position_embeddings);
  return faults;
}

void add_model_fields(FieldList& list, ModelSettings& s) {
  list.group("Model", FieldScope::kModel);
  Field& preset = list.add("model", &s.preset, "NAME",
                           fmt::format("preset of layers, hidden size and heads: {}", fmt::join(preset_names(), ", ")))
                      .of(FieldScope::kPreset)
                      .summarised();
  const auto changes = std::make_shared<PresetChanges>();
  preset.when_set = [&s, changes] {
    const ModelPreset& named = find_model_preset(s.preset);
    changes->apply(s.config, [&] { named.apply_to(s.config); });
  };
  preset.known_values = preset_names();
  preset.is_preset = true;
  add_kind_field(list, s, changes);
  list.add("num-layers", &s.config.num_layers, "N", "transformer layers").summarised();
  list.add("hidden-size", &s.config.hidden_size, "N", "width of the residual stream").summarised();
  list.add("num-attention-heads", &s.config.num_attention_heads, "N", "attention heads; divides the hidden size")
      .summarised();
  list.add("num-query-groups", &s.config.num_key_value_heads, "N",
           "heads of keys and values, each shared by as many attention heads; 0: as many as those");
  list.add("kv-channels", &s.config.head_dim, "N", "size of a head; 0: the hidden size over the heads");
  list.add("ffn-hidden-size", &s.config.intermediate_size, "N",
           "width of the feed-forward block; 0: four times the hidden size");
  list.add("window-size", &s.config.window, "N", "tokens that a token sees at most, itself included; 0: all before it");
  list.add("rotary-base", &s.config.rotary.base, "X", "base of the frequencies of rotary positions");
  list.add("untie-embeddings-and-output-weights", &s.config.untied_output, "",
           "the output projection has a weight of its own; else it is the token embedding");
  list.add("vocab-size", &s.config.vocab_size, "N", "tokens of the vocabulary; 0: the tokenizer's").summarised();
  list.add("max-position-embeddings", &s.config.max_position_embeddings, "N", "longest sequence; 0: --seq-length");
  list.add("make-vocab-size-divisible-by", &s.config.make_vocab_size_divisible_by, "N",
           "the embedding is padded to a multiple of this");
  list.add_choice(
      "layernorm-placement", s.config.norm_placement,
      {{"pre", NormPlacement::kPre}, {"post", NormPlacement::kPost}, {"parallel", NormPlacement::kParallel}},
      "BERT: pre-norm with a final norm (Megatron-LM, Figure 7b), or post-norm as in the original (7a); GPT-NeoX: "
      "parallel, both halves of a layer read its input");
  list.add("layernorm-epsilon", &s.config.layernorm_epsilon, "X", "added to the variance in layer norms");
  list.add("init-method-std", &s.config.init_method_std, "X",
           "standard deviation of the initial weights; auto: 0.02, times the root of 1024/hidden-size in a narrower "
           "model")
      .word = {"auto", kInitByWidth};
  list.add("no-scaled-init-method", &s.config.no_scaled_init, "",
           "initialise weights before a residual add like all others, as the original BERT; else they are smaller by "
           "the root "
           "of twice the layers");
  list.add("hidden-dropout", &s.config.hidden_dropout, "P", "dropout after the embedding and before residual adds");
  list.add("embedding-dropout", &s.config.embedding_dropout, "P",
           "GPT-2: dropout after the embedding, if it differs; 1: --hidden-dropout");
  list.add("attention-dropout", &s.config.attention_dropout, "P", "dropout of attention probabilities");
}

void add_seq_length_field(FieldList& list, ModelSettings& s) {
  list.add("seq-length", &s.seq_length, "N", "tokens a sample").of(FieldScope::kData).summarised();
}

void add_tokenizer_field(FieldList& list, ModelSettings& s) {
  list.add("tokenizer", &s.tokenizer, "DIR", "tokenizer the data was made with; it is saved with the model")
      .of(FieldScope::kInput)
      .summarised();
}

}  // namespace teratron
