// Model: the interface between the executor and a model. The executor itself runs the transformer layers. Models differ
// in their two ends: the embedding makes the residual stream from a slice's inputs, and the head makes losses from the
// last layer's output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nn/transformer_layer.h"

namespace teratron {

// Tokens of a text that its vector is of, [CLS] and [SEP] among them.
enum class PooledTokens { kNone, kAll, kFirst, kLast };

struct ModelTraits {
  std::int64_t hidden_size = 0;
  std::int64_t longest_sequence = 0;  // tokens; the size of a key/value cache
  double init_method_std = 0.02;      // of initial weights, before Parameter::init_scale
  // Inputs besides ids.
  bool token_types = false, key_lengths = false, targets = true, labels = false;
  // Only some tokens have a target; the head gets those whose weight is not 0.
  bool sparse_targets = false;
  bool vocabulary_parallel = false;  // the vocabulary is shared out over all stages, which then run both ends together
  // Every `label_sequences` sequences, one after the other, have `labels_each` labels: a choice between four sequences
  // has one, a span in each sequence two. Micro-batches have whole groups.
  std::int64_t label_sequences = 1, labels_each = 1;
  std::int64_t labels_of(std::int64_t sequences) const { return sequences / label_sequences * labels_each; }
  bool labels_are_places = false;            // the label of a micro-batch's group n is n, whatever the input says
  PooledTokens pools = PooledTokens::kNone;  // the head gets SliceInputs::text_of_row
  // UserError: so many sequences in a micro-batch are no whole groups.
  void check_groups(std::int64_t sequences) const;
  struct Loss {
    std::string_view name, metric;  // for people; in metrics.jsonl
    bool of_labels = false;         // a mean over the weights of labels, else over those of targets
    bool is_rate = false;           // a mean over them that is no part of the loss; after all losses
    bool has_perplexity = true;     // of a token or a label
    bool in_progress = false;       // people see it after every update
  };
  std::vector<Loss> losses = {{"lm loss", "lm_loss"}};  // the kinds of LossSums
};

inline void ModelTraits::check_groups(std::int64_t sequences) const {
  if (sequences % label_sequences == 0) return;
  throw_user_error("a micro-batch of {} sequences: the model has labels for {} sequences at a time; take a multiple",
                   sequences, label_sequences);
}

// Sums of weight * loss, in nats, by kind of loss; then those of the rates. They add up over slices, micro-batches and
// ranks.
struct LossSums {
  std::vector<double> of_kind;
  std::int64_t rates = 0;  // the last of them
  double total() const { return std::accumulate(of_kind.begin(), of_kind.end() - rates, 0.0); }
};

inline LossSums no_losses(const std::vector<ModelTraits::Loss>& kinds) {
  return {std::vector<double>(kinds.size()), std::ranges::count_if(kinds, &ModelTraits::Loss::is_rate)};
}

// Parameters whose gradients are complete at the same moment of a backward pass. Their values, gradients and moments
// lie side by side, so that copies of the model sum them in one collective (executor/parameter_buckets.h).
struct ParameterBucket {
  enum class Part {
    kHead,       // complete when the head's backward is done
    kLayer,      // when that of `layer` is
    kEmbedding,  // when that of the embedding is
    kBothEnds,   // tied: head and embedding each hold it and add to its gradient
  };
  std::string name;
  std::vector<Parameter*> members;
  Part part = Part::kLayer;
  std::int64_t layer = 0;
};

// The inputs of a slice on the device; null where the model has no such input, or it belongs to the other end.
struct SliceInputs {
  TensorRef ids, token_types;  // i32 [batch, tokens]; for the embedding
  TensorRef position_ids;      // i32 [batch, tokens]; null: positions of the sequence
  TensorRef targets, weights;  // i32 and A [batch * tokens], or [targets] where they are sparse; for the head
  // Sparse targets: i32 [targets], the row of each; i32 [batch * tokens], the number of a row's target or -1.
  TensorRef target_rows, target_numbers;
  // Models that pool texts: i32 [batch * tokens], the number of the text whose vector the row is part of, or -1.
  // Texts are counted kind by kind: all first ones of the groups, then all second ones.
  TensorRef text_of_row;
  // i32, of numbers the bits of fp32, and A [ModelTraits::labels_of(batch)]. Weights are times the scale of the loss.
  TensorRef labels, label_weights;
};

// The sizes that an end's memory is planned with.
struct EndSizes {
  CallSizes call;
  std::int64_t logits_chunk = 0;  // rows of logits that exist at a time
  bool training = false;
};

// An end's pass over the ranks of all stages, which share the vocabulary out (ModelTraits::vocabulary_parallel). These
// are whole rows on every rank, whatever the residual stream is.
struct JointPass {
  LayerPass pass;
  int root = 0;  // a rank of the stage that has the end's layers; others have no residual stream
};

// One call of an end. `layers`: workspace that is free during the call: normed, branch and, in the head's backward,
// dnormed.
struct EndCall {
  const LayerPass& pass;
  const SliceInputs& inputs;
  const LayerWorkspace& layers;
  EndSizes sizes;
  TensorRef losses;  // f64, one of each kind; for the head
  Carver kept;       // of the embedding: from the slice's forward to its backward
  Carver memory;     // for this call alone
  // Null: the end is its stage's alone.
  const JointPass* joint = nullptr;

  // The pass over the ranks that share the vocabulary out.
  const LayerPass& vocabulary() const { return joint == nullptr ? pass : joint->pass; }
};

// The parameters of one part of a model, as its visit() yields them.
template <class Part>
std::vector<Parameter*> parameters_of(Part& part) {
  std::vector<Parameter*> all;
  part.visit([&](Parameter& parameter) { all.push_back(&parameter); });
  return all;
}

class Model {
 public:
  Model(ModelTraits model_traits, std::vector<TransformerLayer> all_layers)
      : traits(std::move(model_traits)), layers(std::move(all_layers)) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  const ModelTraits traits;
  std::vector<TransformerLayer> layers;  // of the whole model; a stage runs some

  // Every parameter of the whole model, in the order in which checkpoints have them. Initial weights draw a random
  // stream each, by their number.
  virtual void visit(const ParameterVisitor& visitor) = 0;
  // All parameters, in the order in which a backward pass completes their gradients.
  virtual std::vector<ParameterBucket> buckets() = 0;

  // Cut off the memory that the calls below find again: with the same sizes, in the same order.
  virtual void carve_embedding(const EndSizes& /*sizes*/, Carver& /*kept*/, Carver& /*memory*/) const {}
  virtual void carve_head(const EndSizes& sizes, Carver& memory) const = 0;

  // x, the residual stream (LayerPass::stream_shape), from the inputs; and the parameters' gradients from dx, which may
  // be changed. has_head: a tied parameter's gradient already holds the head's share of this micro-batch.
  // Joint passes: x and dx are null on stages that have not this end; a pass that trains makes gradients on all.
  virtual void embed(const EndCall& call, TensorRef x) = 0;
  virtual void embed_backward(const EndCall& call, TensorRef dx, bool has_head) = 0;

  // Adds the slice's sums of weights * loss to call.losses. Where dx is not null, also makes it, the gradient of the
  // last layer's output x, and the parameters' gradients, of those sums.
  virtual void head(const EndCall& call, TensorRef x, TensorRef dx) = 0;

  // Losses of the slice's targets, A [batch * tokens], in memory of the call. x is the last layer's output. In a joint
  // pass every stage calls it. InternalError: the model does not continue text.
  virtual TensorRef target_losses(const EndCall& /*call*/, TensorRef /*x*/) const {
    check(false, "a model that continues text");
    return {};
  }

  // Logits after token `token` of the slice's first sequence, for this rank's part of the vocabulary: [1, columns].
  // In a joint pass every stage calls it. x is the last layer's output. InternalError: the model does not continue
  // text.
  virtual TensorRef next_token_logits(const EndCall& /*call*/, TensorRef /*x*/, std::int64_t /*token*/) const {
    check(false, "a model that continues text");
    return {};
  }

 protected:
  // A bucket for each layer, from the last to the first.
  void add_layer_buckets(std::vector<ParameterBucket>& buckets) {
    for (std::size_t layer = layers.size(); layer-- > 0;) {
      buckets.push_back({.name = fmt::format("layers.{}", layer),
                         .members = parameters_of(layers[layer]),
                         .part = ParameterBucket::Part::kLayer,
                         .layer = static_cast<std::int64_t>(layer)});
    }
  }
};

}  // namespace teratron
