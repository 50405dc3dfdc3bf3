// Memory of one rank's part of a model: every block that a step needs, with its lifetime, planned before anything is
// allocated; and the views that passes work on. Activations live from their forward to their backward (or to the weight
// gradients, where these come later); with one micro-batch a step, a gradient begins to live when its layer's backward
// runs, and may reuse the memory of activations of the layers above. Layers and ends of a model list their blocks
// (TransformerLayer::carve, Model::carve_head); this room adds the lifetimes.
#pragma once

#include "executor/model.h"
#include "executor/timeline.h"

namespace teratron {

class StageMemory {
 public:
  // Refers to the model and to `cells`, which must outlive it. `send_slots`: see pipeline/send_slots.h.
  StageMemory(const Model& model, const ExecutorOptions& options, const StageCells& cells, int tensor_ranks,
              DType compute_dtype, const Timeline& timeline, int send_slots);

  // Plans everything but parameters, which the caller adds to arena().
  void plan();

  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  const Timeline& timeline() const { return timeline_; }
  // The moments in which the head works.
  const Span& head_moments() const { return head_; }
  // The most rows of a call, the most tokens of one of its sequences, and the most keys that these see.
  std::int64_t most_rows() const { return largest_.rows(); }
  std::int64_t most_tokens() const { return most_tokens_; }
  std::int64_t most_keys() const { return purpose_ == Purpose::kGeneration ? cache_tokens_ : tokens_; }
  // Largest cut of a micro-batch: its sequences, and the tokens of a sequence in each slice.
  const pipeline::MicroBatchCut& cut_of(int micro_batch) const;
  // The kind of a layer, counted in the key's chunk, in the key's slice.
  Recompute recompute(const SliceKey& key, int layer) const { return recompute_.of(layer, key.slice); }

  // Views for a call, after the arena is allocated. `layer` counts from 0 in the key's chunk.
  TensorRef input(const LayerPass& pass, const SliceKey& key, int layer) const;  // x, as all of the residual stream
  TransformerLayer::Saved saved(const LayerPass& pass, const SliceKey& key, int layer, bool backward) const;
  TransformerLayer::ProductGradients deferred(const LayerPass& pass, const SliceKey& key, int layer) const;
  LayerWorkspace workspace(const LayerPass& pass) const;
  TensorRef final_x(const LayerPass& pass, const SliceKey& key) const;  // the last layer's output
  TensorRef sent(const LayerPass& pass, std::size_t slot) const;        // what goes to the next stage
  TensorRef gradient(const LayerPass& pass, std::size_t slot) const;    // of the residual stream
  // The gradient of a cell's output, until its own backward: from that of the stage's next cell
  // (StageCells::is_continued), or, of the last cell, from a joint head.
  TensorRef output_gradient(const LayerPass& pass, const SliceKey& key) const;
  // The gradient of the first cell's input, until the joint backward of the embedding.
  TensorRef input_gradient(const LayerPass& pass, const SliceKey& key) const;
  bool has_joint_ends() const { return joint_ends_; }
  std::size_t gradient_slots() const { return blocks_.gradients.size(); }
  std::size_t send_slots() const { return blocks_.sent.size(); }

  // First tokens in the cache of one sequence, for one layer of this rank, [1, tokens, 2 * key_width].
  TensorRef cached(std::int64_t cache, int layer, std::int64_t tokens) const;

  // The table of rotary positions, with this configuration; no elements where the model has none.
  TensorRef rotary() const { return arena_[blocks_.rotary]; }
  const RotaryConfig& rotary_config() const { return model_.layers.front().attention.rotary; }
  // Keys that a token sees at most, where sequences have more; 0: all.
  std::int64_t window() const {
    const std::int64_t window = model_.layers.front().attention.window;
    return window < most_keys() ? window : 0;
  }

  TensorRef adapters() const { return arena_[blocks_.adapters]; }  // LayerPass::adapters

  TensorRef losses() const { return arena_[blocks_.losses]; }  // f64, one of each kind

  // Inputs; views of no elements where the model or the stage has no such input.
  TensorRef cache_lengths(std::int64_t batch) const { return view(blocks_.cache_lengths, {batch}); }  // of generation
  TensorRef counters() const { return arena_[blocks_.counters]; }  // i32 [2], of training: Dropout::counters
  TensorRef key_lengths(std::int64_t batch) const { return view(blocks_.key_lengths, {batch}); }
  TensorRef first_keys(const Shape& shape) const { return view(blocks_.first_keys, shape); }
  TensorRef position_ids(const Shape& shape) const { return view(blocks_.position_ids, shape); }
  TensorRef ids(const Shape& shape) const { return view(blocks_.ids, shape); }
  TensorRef token_types(const Shape& shape) const { return view(blocks_.token_types, shape); }
  TensorRef targets(std::int64_t rows) const { return view(blocks_.targets, {rows}); }
  TensorRef weights(std::int64_t rows) const { return view(blocks_.weights, {rows}); }
  TensorRef target_rows(std::int64_t targets) const { return view(blocks_.target_rows, {targets}); }
  TensorRef target_numbers(std::int64_t rows) const { return view(blocks_.target_numbers, {rows}); }
  TensorRef text_of_row(std::int64_t rows) const { return view(blocks_.text_of_row, {rows}); }
  TensorRef labels(std::int64_t labels) const { return view(blocks_.labels, {labels}); }
  TensorRef label_weights(std::int64_t labels) const { return view(blocks_.label_weights, {labels}); }

  EndSizes end_sizes(const LayerPass& pass) const { return {pass.sizes(), logits_chunk_, training()}; }
  Carver embedding_kept(const SliceKey& key) const;
  Carver embedding_memory() const { return Carver(arena_[blocks_.embedding].data); }
  Carver head_memory() const { return Carver(arena_[blocks_.head].data); }

 private:
  // Blocks of one layer in one slice of one micro-batch: `again` for activations that recompute makes again, `kept` for
  // the rest.
  struct LayerBlocks {
    Arena::Block x = 0, kept = 0;
    Arena::Block again = 0, deferred = 0;  // where weight gradients come later: until then
  };
  // Memory that the calls of a sequence share: in training its projections and the gradients of keys and values.
  struct CacheBlocks {
    Arena::Block keys_values = 0;  // of generation
    Arena::Block qkv = 0, key_value = 0, dkv = 0;
  };
  struct SliceBlocks {
    std::vector<LayerBlocks> layers;
    Arena::Block embedding_kept = 0, final_x = 0, output_gradient = 0, input_gradient = 0;
  };
  struct Blocks {
    Arena::Block cache_lengths, counters, key_lengths, first_keys, position_ids, rotary;
    Arena::Block ids, token_types, targets, weights, target_rows, target_numbers, text_of_row, labels, label_weights;
    Arena::Block normed, branch, dnormed, wide, heads, again_forward, again_backward, adapters, embedding, head, losses;
    std::vector<Arena::Block> sent, gradients;
    std::vector<SliceBlocks> slices;               // by the timeline's index
    std::vector<std::vector<CacheBlocks>> caches;  // [chunk, micro-batch][layer]
  };
  // Bytes that a layer keeps for its backward, in the largest call of a slice.
  struct LayerBytes {
    std::int64_t kept = 0, again = 0, deferred = 0;
  };

  bool training() const { return purpose_ == Purpose::kTraining; }
  bool sliced() const { return timeline_.most_slices() > 1; }
  // A layer's projections lie in memory of their own where other calls see them.
  bool has_cache() const { return sliced() || purpose_ == Purpose::kGeneration; }
  const TransformerLayer& layer(int chunk, int index) const {
    return model_.layers[static_cast<std::size_t>(cells_.first_layer(chunk) + index)];
  }
  // The most of a call: of a slice, and of any.
  struct Call {
    std::int64_t batch = 0, tokens = 0;
    std::int64_t rows() const { return batch * tokens; }
  };
  Call call_of(const SliceKey& key) const;
  CallSizes sizes_of(const Call& call) const;
  EndSizes largest_end() const { return {sizes_of(largest_), logits_chunk_, training()}; }
  LayerBytes layer_bytes(const SliceKey& key, int index, const Call& call) const;
  KeptActivations keeping(const SliceKey& key, int index) const;
  std::size_t cache_index(const SliceKey& key) const {
    return static_cast<std::size_t>(key.chunk * timeline_.micro_batches() + key.micro_batch);
  }

  void find_spans();
  void plan_slice(const SliceKey& key);
  void plan_cache(int chunk, int micro_batch);
  void plan_workspace();
  void plan_exchange();
  void plan_inputs();
  void plan_ends();
  Arena::Block add(const char* name, MemoryKind kind, DType dtype, const Shape& shape, const Span& life);
  TensorRef view(Arena::Block block, const Shape& shape) const;

  const Model& model_;
  const StageCells& cells_;
  const Purpose purpose_;
  const std::int64_t batch_, tokens_, caches_, cache_tokens_, logits_chunk_, hidden_, kept_layers_;
  const std::vector<pipeline::MicroBatchCut> cuts_;
  const StageRecompute recompute_;
  const bool sequence_parallel_, first_keys_, position_ids_, joint_ends_;
  const int tensor_ranks_;
  const DType dtype_, accumulation_;
  const Timeline timeline_;
  const int slots_;
  Span all_, forward_, backward_, embedding_, head_;
  Call largest_;  // the one with most rows
  std::int64_t most_tokens_ = 0;
  Arena arena_;
  Blocks blocks_{};
};

}  // namespace teratron
