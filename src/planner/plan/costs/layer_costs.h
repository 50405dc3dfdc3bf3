// A rank's time for a slice of tokens in one layer, from the shapes of its matrix products, the bytes that it reads
// and writes, and the collectives of tensor parallelism (Megatron-LM, section 3; TeraPipe, section 3.3). A kernel takes
// as long as the slower of its arithmetic and its memory traffic, and a time to start. The constants are the cluster's.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "cluster/cluster.h"
#include "cluster/collective_time.h"
#include "model/config.h"
#include "nn/transformer_layer.h"
#include "nn/work.h"
#include "pipeline/timing/costs.h"
#include "plan/costs/cost_constants.h"

namespace teratron::plan {

// A slice of a micro-batch: tokens of each sequence, which attend to `context` tokens before them.
struct Slice {
  std::int64_t sequences = 1, tokens = 0, context = 0;
};

// Ranks that split each sequence among them: context parallelism. A rank has its share of the queries, in two pieces
// from both ends of the sequence, so that all of them attend to as many keys (ring attention, arXiv 2310.01889; Llama
// 3, arXiv 2407.21783, section 3.3.2). Teratron cannot run it: published runs alone are predicted with it.
struct ContextSplit {
  std::int64_t ranks = 1;
  bool is_ring = false;  // keys and values go from rank to rank beside the products; else they are gathered before
};

struct LayerSettings {
  std::int64_t tensor = 1;  // ranks of tensor parallelism; they divide the heads and the widths
  std::int64_t groups = 1;  // of such ranks, one after another on the cluster; the slowest sets the pace
  std::int64_t vocabulary_stages = 1;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::kNone;  // of layers whose kind is not named
  DType dtype = DType::kF16;
  ContextSplit context = {};
};

// Tensor-parallel group with the slowest collectives, of the first `groups`, which stand one after another on the
// cluster. Where their size does not divide a host's devices, some lie astride two hosts.
CollectiveGroup slowest_tensor_group(const Cluster& cluster, std::int64_t tensor, std::int64_t groups);

class ModelCosts {
 public:
  // UserError where the cluster has constants that there are none of.
  ModelCosts(const ModelConfig& model, const LayerSettings& settings, const Cluster& cluster);
  // The costs of the same model on another cluster.
  ModelCosts on(const Cluster& cluster) const;

  // Milliseconds on each rank. Backward passes, whole and of the input, include what they make again.
  pipeline::PassTimes layer(const Slice& slice) const { return layer(slice, settings_.recompute); }
  pipeline::PassTimes layer(const Slice& slice, Recompute recompute) const;
  pipeline::PassTimes embedding(const Slice& slice) const;
  pipeline::PassTimes head(const Slice& slice) const;  // logits, loss and their gradients, all in the backward
  // A stage's part of the joint passes, where stages share the vocabulary out.
  pipeline::PassTimes joint_ends(const Slice& slice) const;
  // The gather that follows a message between stages (executor/stream_messages.h); 0 with sequence parallelism.
  double gather_after_message(const Slice& slice) const;

  double update_seconds(double parameters) const;  // norm and AdamW of a rank's parameters
  // Muon's orthogonalisation of a whole matrix on one rank (optim/muon/newton_schulz.h).
  double orthogonalize_seconds(double rows, double columns) const;

  // Operations of one rank, forward and backward, nothing made again, causal attention counted as the half it is:
  // layers and head together are ModelConfig::training_flops_per_token.
  double layer_operations(const Slice& slice) const;
  double head_operations(const Slice& slice) const;
  // The operations that a layer's backward makes again.
  double recomputed_operations(const Slice& slice, Recompute recompute) const;

 private:
  struct Parts;  // of a pass: seconds

  void take(const Cluster& cluster);
  double kernels(double seconds, double count) const;               // with their starts, on all cores or on one
  double product(double rows, double inner, double columns) const;  // seconds
  double product_at(double rate, double rows, double inner, double columns, double count) const;
  double scaled_product(double rows, double inner, double columns, bool in_layer) const;
  bool in_8_bits(bool in_layer) const { return in_layer && constants_.fp8_products != 0; }
  // `in_layer`: may be of 8 bits; the head never is.
  double product_of_weights(double rows, double inner, double columns, bool in_layer = true) const;
  double weight_gradient(double rows, double inner, double columns, bool in_layer = true) const;  // of such a product
  double passes(double elements, double reads_and_writes) const;
  double collective(double bytes) const;
  double vocabulary_collective(double bytes) const;  // of all that have a part of it
  struct AttentionSizes {
    double heads, key_heads, head_size, queries, keys;  // heads: of all sequences, of this rank
  };
  AttentionSizes attention_sizes(const Slice& slice) const;
  double context_of(const Slice& slice) const;  // tokens before a query's slice, in the mean where sequences are split
  double attention_operations(const Slice& slice) const;  // of a forward
  double attention_rate(double head_size) const;          // operations a second, of what writes no scores
  double score_products(const Slice& slice) const;
  double attention_forward(const Slice& slice) const;
  double attention_backward(const Slice& slice) const;
  double key_exchange(const Slice& slice) const;  // seconds, of ranks that split a sequence
  double with_exchange(double attention, double exchange) const;
  double cache_copies(const Slice& slice, double reads_and_writes) const;
  double stream_elements(const Slice& slice) const;
  Parts parts(const Slice& slice) const;

  ModelConfig model_;
  Work work_;  // of a layer on a rank
  LayerSettings settings_;
  Cluster cluster_;
  CostConstants constants_;
  CollectiveGroup tensor_group_, vocabulary_group_, context_group_;
  double peak_ = 0, bandwidth_ = 0, element_ = 2;  // operations and bytes a second; bytes of a number
  double milliseconds_ = 0;                        // of a pass, for each second that it takes at its best
};

}  // namespace teratron::plan
