// The views of a stage's memory.
#include "model/stage_memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/round_up.h"

namespace teratron {
namespace {

constexpr std::int64_t kAlignment = 128;  // bytes between the starts of tensors: cache-line pairs

// Cuts tensors off a run of memory, one after another. Over no memory it counts them all the same.
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<std::byte*>(memory)) {}
  TensorRef take(DType dtype, const Shape& shape) {
    TensorRef tensor(memory_ == nullptr ? nullptr : memory_ + bytes_, dtype, shape);
    bytes_ += round_up(tensor.bytes(), kAlignment);
    return tensor;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace

TransformerLayer::Saved StageMemory::carve(const Sizes& sizes, void* kept_memory, void* again_memory,
                                           LayerBytes& bytes) const {
  const std::int64_t b = sizes.batch, s = sizes.tokens, width = config_.hidden_size / ranks_;
  const Shape rows{sizes.stream.elements() / config_.hidden_size};
  Carver kept(kept_memory), again(again_memory);
  const bool full = options_.recompute == Recompute::kFull, any = options_.recompute != Recompute::kNone;
  Carver& for_full = full ? again : kept;
  Carver& for_any = any ? again : kept;
  TransformerLayer::Saved saved;
  if (!has_cache()) saved.attention.qkv = for_full.take(dtype_, {b, s, 3 * width});
  saved.attention.context = for_any.take(dtype_, {b, s, width});
  saved.attention.log_sum_exp = for_any.take(accumulation_, {b, config_.num_attention_heads / ranks_, s});
  saved.norm1 = {.mean = for_full.take(accumulation_, rows), .rstd = for_full.take(accumulation_, rows)};
  saved.x1 = for_full.take(dtype_, sizes.stream);
  saved.norm2 = {.mean = for_full.take(accumulation_, rows), .rstd = for_full.take(accumulation_, rows)};
  saved.mlp.pre_activation = for_full.take(dtype_, {b, s, config_.ffn_hidden_size() / ranks_});
  bytes.kept = kept.bytes();
  bytes.again = again.bytes();
  return saved;
}

TransformerLayer::ProductGradients StageMemory::carve_deferred(const Sizes& sizes, void* memory,
                                                               std::int64_t& bytes) const {
  const std::int64_t b = sizes.batch, s = sizes.tokens, h = config_.hidden_size;
  Carver carver(memory);
  TransformerLayer::ProductGradients gradients;
  gradients.mlp = carver.take(dtype_, {b, s, h});
  gradients.up = carver.take(dtype_, {b, s, config_.ffn_hidden_size() / ranks_});
  gradients.attention = carver.take(dtype_, {b, s, h});
  gradients.qkv = carver.take(dtype_, {b, s, 3 * h / ranks_});
  bytes = carver.bytes();
  return gradients;
}

TensorRef StageMemory::view(Arena::Block block, const Shape& shape) const {
  const TensorRef whole = arena_[block];
  check(shape.elements() <= whole.elements(), "a call within the runner's planned sizes");
  return {whole.data, whole.dtype, shape};
}

TensorRef StageMemory::input(const Step& step, const SlicePlace& place, int layer) const {
  const SliceBlocks& blocks = blocks_.slices[timeline_.index(place)];
  return view(blocks.layers[static_cast<std::size_t>(layer)].x, step.stream_shape(config_.hidden_size));
}

TransformerLayer::Saved StageMemory::saved(const Step& step, const SlicePlace& place, int layer, bool backward) const {
  const std::size_t at = static_cast<std::size_t>(layer);
  const LayerBlocks& blocks = blocks_.slices[timeline_.index(place)].layers[at];
  // What a forward pass makes and backward makes again is workspace; again it lies where weight gradients find it.
  const Arena::Block again = !backward                           ? blocks_.again_forward
                             : timeline_.of(place).is_deferred() ? blocks.again
                                                                 : blocks_.again_backward;
  LayerBytes bytes;
  TransformerLayer::Saved saved = carve(sizes_of(step), arena_[blocks.kept].data, arena_[again].data, bytes);
  check(bytes.kept <= arena_[blocks.kept].bytes() && bytes.again <= arena_[again].bytes(),
        "a call within the runner's planned sizes");
  saved.x = input(step, place, layer);
  if (!has_cache()) return saved;
  const CacheBlocks& cache = blocks_.caches[cache_index(place)][at];
  const std::int64_t width = config_.hidden_size / ranks_;
  const std::int64_t length =
      options_.purpose == Purpose::kGeneration ? config_.max_position_embeddings : step.sequence_length;
  saved.attention.qkv = view(cache.qkv, {step.batch, length, 3 * width});
  if (sliced() && backward) saved.attention.dkv = view(cache.dkv, {step.batch, length, 2 * width});
  return saved;
}

TransformerLayer::ProductGradients StageMemory::deferred(const Step& step, const SlicePlace& place, int layer) const {
  const auto& layers = blocks_.slices[timeline_.index(place)].layers;
  const TensorRef whole = arena_[layers[static_cast<std::size_t>(layer)].deferred];
  std::int64_t bytes = 0;
  TransformerLayer::ProductGradients gradients = carve_deferred(sizes_of(step), whole.data, bytes);
  check(bytes <= whole.bytes(), "a call within the runner's planned sizes");
  return gradients;
}

LayerWorkspace StageMemory::workspace(const Step& step) const {
  const std::int64_t b = step.batch, s = step.tokens, h = config_.hidden_size;
  return {.normed = view(blocks_.normed, {b, s, h}),
          .branch = view(blocks_.branch, {b, s, h}),
          .dnormed = training() ? view(blocks_.dnormed, {b, s, h}) : TensorRef(),
          .wide = view(blocks_.wide, {b, s, config_.ffn_hidden_size() / ranks_})};
}

TensorRef StageMemory::final_x(const Step& step, const SlicePlace& place) const {
  return view(blocks_.slices[timeline_.index(place)].final_x, step.stream_shape(config_.hidden_size));
}

LayerNorm::Saved StageMemory::final_statistics(const Step& step) const {
  const Shape rows{step.stream_shape(1).elements()};
  return {.mean = view(blocks_.final_mean, rows), .rstd = view(blocks_.final_rstd, rows)};
}

TensorRef StageMemory::sent(const Step& step, std::size_t slot) const {
  return view(blocks_.sent[slot], step.stream_shape(config_.hidden_size));
}

TensorRef StageMemory::gradient(const Step& step, std::size_t slot) const {
  return view(blocks_.gradients[slot], step.stream_shape(config_.hidden_size));
}

LanguageModelHead::Workspace StageMemory::head(std::int64_t rows) const {
  const std::int64_t chunk = std::min(arena_[blocks_.logits].dim(0), rows);
  return {.logits = view(blocks_.logits, {chunk, columns_}),
          .max = view(blocks_.max, {chunk}),
          .own_max = view(blocks_.own_max, {chunk}),
          .sum_and_target = view(blocks_.sum_and_target, {2, chunk})};
}

}  // namespace teratron
