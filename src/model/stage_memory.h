// The memory of one rank's part of a GPT-2: every block a step needs, from when to when, planned before anything is
// taken; and the views of it that passes work on. Activations live from their forward to their backward (or to the
// weight gradients, where these come later); with one micro-batch a step, a gradient is born where its layer's backward
// runs, and so may lie where the activations of layers above lay.
#pragma once

#include "comm/mesh.h"
#include "model/config.h"
#include "model/timeline.h"
#include "nn/language_model_head.h"
#include "ops/backend.h"
#include "tensor/memory.h"

namespace teratron {

class StageMemory {
 public:
  // `micro_batches`: how many have a place of their own; the schedule's list holds no others.
  StageMemory(const ModelConfig& config, const RunnerOptions& options, const StagePart& part, const Mesh& mesh,
              DType compute_dtype, const Timeline& timeline, int send_slots);

  // Plans everything but parameters, which the caller adds to arena().
  void plan();

  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  const Timeline& timeline() const { return timeline_; }
  // The moments in which the head works.
  const Span& head_moments() const { return head_; }
  std::int64_t slice_tokens(int slice) const;  // the most, of one sequence

  // Views for a call, after the arena is allocated. `layer` counts from 0 in the place's chunk.
  TensorRef input(const Step& step, const SlicePlace& place, int layer) const;  // x, as all of the residual stream
  TransformerLayer::Saved saved(const Step& step, const SlicePlace& place, int layer, bool backward) const;
  TransformerLayer::ProductGradients deferred(const Step& step, const SlicePlace& place, int layer) const;
  LayerWorkspace workspace(const Step& step) const;
  TensorRef final_x(const Step& step, const SlicePlace& place) const;  // what the last layer gives
  LayerNorm::Saved final_statistics(const Step& step) const;
  TensorRef sent(const Step& step, std::size_t slot) const;      // what goes to the next stage
  TensorRef gradient(const Step& step, std::size_t slot) const;  // of the residual stream
  std::size_t gradient_slots() const { return blocks_.gradients.size(); }
  std::size_t send_slots() const { return blocks_.sent.size(); }

  TensorRef cache_length() const { return view(blocks_.cache_length, {1}); }  // i32 [1], of generation
  TensorRef ids(std::int64_t rows) const { return view(blocks_.ids, {rows}); }
  TensorRef targets(std::int64_t rows) const { return view(blocks_.targets, {rows}); }
  TensorRef weights(std::int64_t rows) const { return view(blocks_.weights, {rows}); }
  TensorRef loss(std::int64_t rows) const { return view(blocks_.loss, {rows}); }
  TensorRef normed_rows(const Shape& shape) const { return view(blocks_.normed, shape); }
  LanguageModelHead::Workspace head(std::int64_t rows) const;
  TensorRef gathered_logits(const Shape& shape) const { return view(blocks_.gathered_logits, shape); }

 private:
  // Of one layer in one slice of one micro-batch. What recompute makes again lies in `again`, the rest in `kept`.
  struct LayerBlocks {
    Arena::Block x = 0, kept = 0;
    Arena::Block again = 0, deferred = 0;  // where weight gradients come later: until then
  };
  struct CacheBlocks {
    Arena::Block qkv = 0, dkv = 0;
  };
  struct SliceBlocks {
    std::vector<LayerBlocks> layers;
    Arena::Block final_x = 0;
  };
  struct Blocks {
    Arena::Block cache_length, ids, targets, weights, loss;
    Arena::Block normed, branch, dnormed, wide, again_forward, again_backward;
    Arena::Block logits, gathered_logits, max, own_max, sum_and_target, final_mean, final_rstd;
    std::vector<Arena::Block> sent, gradients;
    std::vector<SliceBlocks> slices;               // by the timeline's index
    std::vector<std::vector<CacheBlocks>> caches;  // [chunk, micro-batch][layer]
  };
  // What a layer leaves for its backward, of the largest call there is of a slice.
  struct LayerBytes {
    std::int64_t kept = 0, again = 0, deferred = 0;
  };

  bool training() const { return options_.purpose == Purpose::kTraining; }
  bool sliced() const { return timeline_.slices() > 1; }
  // A layer's packed projections are a cache of their own where other calls see them.
  bool has_cache() const { return sliced() || options_.purpose == Purpose::kGeneration; }
  std::int64_t stream_rows(std::int64_t tokens) const;
  // A call's: sequences, tokens of each, and the residual stream's shape.
  struct Sizes {
    std::int64_t batch, tokens;
    Shape stream;
  };
  Sizes sizes_of(const Step& step) const { return {step.batch, step.tokens, step.stream_shape(config_.hidden_size)}; }
  LayerBytes layer_bytes(int slice) const;
  TransformerLayer::Saved carve(const Sizes& sizes, void* kept, void* again, LayerBytes& bytes) const;
  TransformerLayer::ProductGradients carve_deferred(const Sizes& sizes, void* memory, std::int64_t& bytes) const;
  std::size_t cache_index(const SlicePlace& place) const {
    return static_cast<std::size_t>(place.chunk * timeline_.micro_batches() + place.micro_batch);
  }

  void find_spans();
  void plan_slice(const SlicePlace& place);
  void plan_cache(int chunk, int micro_batch);
  void plan_workspace();
  void plan_exchange();
  void plan_head();
  Arena::Block add(const char* name, MemoryKind kind, DType dtype, const Shape& shape, const Span& life);
  TensorRef view(Arena::Block block, const Shape& shape) const;

  const ModelConfig& config_;
  const RunnerOptions& options_;
  const StagePart& part_;
  const int ranks_;  // tensor-parallel
  const DType dtype_, accumulation_;
  const Timeline timeline_;
  const int slots_;
  const std::int64_t columns_;  // of the logits here
  Span all_, forward_, backward_, head_;
  std::int64_t most_tokens_ = 0;  // of a sequence in a slice
  Arena arena_;
  Blocks blocks_{};
};

}  // namespace teratron
