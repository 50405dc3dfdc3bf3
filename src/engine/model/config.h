// ModelConfig: the family of a model (model/family.h) and its shape, which decide its parameters and the function they
// compute. Checks and counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/faults.h"
#include "base/round_up.h"
#include "model/pooling.h"
#include "nn/transformer_layer.h"

namespace teratron {

enum class ModelKind { kGpt2, kBert, kLlama, kMistral, kQwen2, kQwen3, kGptNeox, kRoberta, kDistilBert };
struct Family;

// Head of a model.
enum class ModelHead {
  kPretraining,  // of models that continue text: the output projection. BERT: that with its transform, and the order of
                 // sentences; RoBERTa and DistilBERT: without the latter
  kNone,         // of BERT: the encoder and its pooler alone, as Hugging Face's BertModel is
  // Heads of a BERT for fine-tuning (model/bert_task_head.h).
  kClassification,  // one of num_labels for each text or pair of texts; with one label, a number
  kChoice,          // one of kChoices texts
  kSpans,           // the beginning and the end of an answer in each text; without a pooler
  kTokens,          // one of num_labels for each token; without a pooler
  // Vectors of texts by a BERT, whose cosines are learned (model/text_vector_head.h); without parameters and a pooler.
  kVectors,
};
// Heads with a layer of their own for a task.
constexpr bool is_task_head(ModelHead head) { return head >= ModelHead::kClassification && head <= ModelHead::kTokens; }
// Those whose rows are labels, which may have names.
constexpr bool tells_labels(ModelHead head) { return head == ModelHead::kClassification || head == ModelHead::kTokens; }

// Learning of vectors of texts.
struct TextVectors {
  Pooling pooling = Pooling::kMean;  // one that can_be_trained(), unless texts is 1
  // Texts of an example: two that belong together, in training perhaps a third that does not; 1: each is encoded alone.
  std::int64_t texts = 2;
  std::int64_t tokens = 0;        // most tokens of a text that was read in training; 0: the model's positions
  bool are_similarities = false;  // cosines are numbers to learn; else they rank an example's second text first
  bool operator==(const TextVectors&) const = default;
};
constexpr std::int64_t kChoices = 4;

// The most layers of a model, and so of stages that have one each. The training state of the widest model, of 18 bytes
// a parameter at most, then takes fewer than 2^63 bytes, which plans of memory count in; random streams, of 24 bits,
// would allow 2^20 layers with their 12 parameters each.
constexpr std::int64_t kMostLayers = 1 << 14;

// Standard deviation of initial weights by the model's width: 0.02, GPT-2's and BERT's, from a hidden size of 1024 on;
// in narrower models times sqrt(1024 / hidden_size), which keeps the scale of a layer's products.
double init_std_by_width(std::int64_t hidden_size);

// Adds a fault unless the value is above 0, and finite, as an fp32 number too.
void need_positive(Faults& faults, Flag flag, double value);

struct ModelConfig {
  ModelKind kind = ModelKind::kGpt2;
  std::int64_t num_layers = 12;
  std::int64_t hidden_size = 768;
  std::int64_t num_attention_heads = 12;
  std::int64_t num_key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  std::int64_t intermediate_size = 0;    // of the MLP; 0: usual_ffn_size()
  std::int64_t vocab_size = 50257;
  std::int64_t max_position_embeddings = 1024;
  std::int64_t make_vocab_size_divisible_by = 128;
  double layernorm_epsilon = 1e-5;
  double hidden_dropout = 0.1;     // after the embedding and before each residual add
  double embedding_dropout = 1;    // after the embedding of models that continue text; 1, which is no rate,
                                   // stands for hidden_dropout
  double attention_dropout = 0.1;  // on attention probabilities
  double init_method_std = 0.02;
  bool no_scaled_init = false;  // the opposite of TransformerLayerConfig::scaled_init
  Activation activation = Activation::kGeluTanh;
  NormPlacement norm_placement = NormPlacement::kPre;  // post, original BERT's, is for models that read texts
  NormKind norm = NormKind::kLayer;
  bool gated_mlp = false, linear_bias = true, qkv_bias = true;  // TransformerLayerConfig
  bool head_norms = false;                                      // RMS norms of queries and keys
  bool untied_output = false;  // of models that continue text: the output projection has a weight of its own
  std::int64_t window = 0;     // tokens that a token sees at most, itself included; 0: all before
  double rotary_share = 0;     // of a head's elements that have rotary positions; 0: positions are learned
  RotaryConfig rotary;         // but its elements, which follow from the share
  AdapterConfig adapters;      // with a rank: they alone are trained, and the rest is frozen (model/adapters.h)
  ModelHead head = ModelHead::kPretraining;
  TextVectors vectors;          // of kVectors
  std::int64_t num_labels = 2;  // of kClassification and kTokens
  // Labels of the rows of these two; empty if they have no names (model/label_names.h).
  std::vector<std::string> label_names;

  // Replaces the head by that of pre-training.
  void set_pretraining_head();
  // Makes it a model of that family, with what its models have in common: activation, norms, positions. Sizes stay.
  void set_kind(ModelKind new_kind);
  const Family& family() const;

  // Whether a layer reads the first token: a pooler, or one of a task's head in its place (model/bert_kind.h).
  bool has_pooler() const;
  bool has_learned_positions() const { return rotary_share == 0; }
  // Rows of the linear layer that a task's head ends in: numbers for each text, or for each token.
  std::int64_t task_logits() const { return tells_labels(head) ? num_labels : head == ModelHead::kSpans ? 2 : 1; }

  double dropout_after_embedding() const { return embedding_dropout == 1 ? hidden_dropout : embedding_dropout; }
  std::int64_t ffn_hidden_size() const {
    return intermediate_size == 0 ? usual_ffn_size(hidden_size) : intermediate_size;
  }
  std::int64_t key_value_heads() const { return num_key_value_heads == 0 ? num_attention_heads : num_key_value_heads; }
  std::int64_t head_size() const { return head_dim == 0 ? hidden_size / num_attention_heads : head_dim; }
  NormShape norm_shape() const { return {.kind = norm, .columns = hidden_size, .epsilon = layernorm_epsilon}; }
  // A multiple of make_vocab_size_divisible_by for each rank that holds a part.
  std::int64_t padded_vocab_size(std::int64_t tensor_parallel_size = 1) const {
    return round_up(vocab_size, make_vocab_size_divisible_by * tensor_parallel_size);
  }
  // Whether tensor-parallel ranks can share the layers: whole heads each, and equal parts of the MLP; where ranks are
  // more than key heads, as many share each.
  bool splits_over(std::int64_t ranks) const;
  TransformerLayerConfig layer_config() const;
  // This tensor-parallel rank's part of every layer. UserError lists the faults of the configuration.
  std::vector<TransformerLayer> make_layers(GroupRank group) const;
  std::int64_t parameters() const;          // values, without the padding of the vocabulary
  std::int64_t trained_parameters() const;  // of them; with adapters, theirs

  // Operations of forward and backward a token, multiply-adds counted twice, causal attention as the half it is,
  // nothing recomputed; of a GPT-2, 6 (12 L h^2 + V h) + 6 L h s. (The formula of arXiv 2104.04473 counts attention in
  // full, 12 L h s, and a recomputed forward.) BERT's attention is counted in full, its output projection and transform
  // for the 15 % of tokens that are predicted, its pooler once a sequence.
  double training_flops_per_token(std::int64_t sequence_length) const;

  // Every fault of the configuration, split over so many tensor-parallel ranks, with the nearest values that work.
  Faults faults(std::int64_t tensor_parallel_size = 1) const;
};

}  // namespace teratron
