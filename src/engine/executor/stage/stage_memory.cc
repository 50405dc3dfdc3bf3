// The views of a stage's memory.
#include "executor/stage/stage_memory.h"

#include "base/error.h"

namespace teratron {

TensorRef StageMemory::view(Arena::Block block, const Shape& shape) const {
  const TensorRef whole = arena_[block];
  check(shape.elements() <= whole.elements(), "a call within the executor's planned sizes");
  return {whole.data, whole.dtype, shape};
}

TensorRef StageMemory::input(const LayerPass& pass, const SliceKey& key, int layer) const {
  const SliceBlocks& blocks = blocks_.slices[timeline_.index(key)];
  return view(blocks.layers[static_cast<std::size_t>(layer)].x, pass.stream_shape(hidden_));
}

TransformerLayer::Saved StageMemory::saved(const LayerPass& pass, const SliceKey& key, int layer_index,
                                           bool backward) const {
  const std::size_t at = static_cast<std::size_t>(layer_index);
  const LayerBlocks& blocks = blocks_.slices[timeline_.index(key)].layers[at];
  // Tensors that forward makes and backward makes again are workspace in forward; in backward they lie where weight
  // gradients find them.
  const TensorRef kept = arena_[blocks.kept],
                  again = arena_[!backward                         ? blocks_.again_forward
                                 : timeline_.of(key).is_deferred() ? blocks.again
                                                                   : blocks_.again_backward];
  const TransformerLayer& layer = this->layer(key.chunk, layer_index);
  Carver from_kept(kept.data), from_again(again.data);
  TransformerLayer::Saved saved = layer.carve(pass.sizes(), keeping(key, layer_index), from_kept, from_again);
  check(from_kept.bytes() <= kept.bytes() && from_again.bytes() <= again.bytes(),
        "a call within the executor's planned sizes");
  saved.x = input(pass, key, layer_index);
  if (!has_cache()) return saved;
  const CacheBlocks& cache = blocks_.caches[cache_index(key)][at];
  const Attention& attention = layer.attention;
  if (purpose_ == Purpose::kGeneration) {
    saved.attention.cache = arena_[cache.keys_values].slice(0, pass.first_cache, pass.first_cache + pass.batch);
    return saved;
  }
  const auto whole = [&](Arena::Block block, std::int64_t columns) {
    return view(block, {pass.batch, pass.sequence_length, columns});
  };
  saved.attention.qkv = whole(cache.qkv, attention.qkv.outputs());
  if (attention.key_value) saved.attention.key_value = whole(cache.key_value, attention.key_value->outputs());
  if (sliced() && backward) saved.attention.dkv = whole(cache.dkv, 2 * attention.key_width());
  return saved;
}

TensorRef StageMemory::cached(std::int64_t cache, int layer, std::int64_t tokens) const {
  const TensorRef all = arena_[blocks_.caches.front()[static_cast<std::size_t>(layer)].keys_values];
  return all.slice(0, cache, cache + 1).slice(1, 0, tokens);
}

TransformerLayer::ProductGradients StageMemory::deferred(const LayerPass& pass, const SliceKey& key,
                                                         int layer_index) const {
  const auto& layers = blocks_.slices[timeline_.index(key)].layers;
  const TensorRef whole = arena_[layers[static_cast<std::size_t>(layer_index)].deferred];
  Carver carver(whole.data);
  const TransformerLayer::ProductGradients gradients =
      layer(key.chunk, layer_index).carve_gradients(pass.sizes(), carver);
  check(carver.bytes() <= whole.bytes(), "a call within the executor's planned sizes");
  return gradients;
}

LayerWorkspace StageMemory::workspace(const LayerPass& pass) const {
  const std::int64_t b = pass.batch, s = pass.tokens;
  return {.normed = view(blocks_.normed, {b, s, hidden_}),
          .branch = view(blocks_.branch, {b, s, hidden_}),
          .dnormed = training() ? view(blocks_.dnormed, {b, s, hidden_}) : TensorRef(),
          .wide = view(blocks_.wide, {b, s, arena_[blocks_.wide].dim(1)}),
          .heads = view(blocks_.heads, {b, s, arena_[blocks_.heads].dim(1)})};
}

TensorRef StageMemory::final_x(const LayerPass& pass, const SliceKey& key) const {
  return view(blocks_.slices[timeline_.index(key)].final_x, pass.stream_shape(hidden_));
}

TensorRef StageMemory::sent(const LayerPass& pass, std::size_t slot) const {
  return view(blocks_.sent[slot], pass.stream_shape(hidden_));
}

TensorRef StageMemory::gradient(const LayerPass& pass, std::size_t slot) const {
  return view(blocks_.gradients[slot], pass.stream_shape(hidden_));
}

TensorRef StageMemory::output_gradient(const LayerPass& pass, const SliceKey& key) const {
  return view(blocks_.slices[timeline_.index(key)].output_gradient, pass.stream_shape(hidden_));
}

TensorRef StageMemory::input_gradient(const LayerPass& pass, const SliceKey& key) const {
  return view(blocks_.slices[timeline_.index(key)].input_gradient, pass.stream_shape(hidden_));
}

Carver StageMemory::embedding_kept(const SliceKey& key) const {
  return Carver(arena_[blocks_.slices[timeline_.index(key)].embedding_kept].data);
}

}  // namespace teratron
