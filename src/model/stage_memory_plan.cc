// The plan of a stage's memory: which block lives when.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/stage_memory.h"
#include "pipeline/send_slots.h"

namespace teratron {

StageMemory::StageMemory(const ModelConfig& config, const RunnerOptions& options, const StagePart& part,
                         const Mesh& mesh, DType compute_dtype, const Timeline& timeline, int send_slots)
    : config_(config),
      options_(options),
      part_(part),
      ranks_(mesh.tensor->size()),
      dtype_(compute_dtype),
      accumulation_(accumulation_dtype_of(compute_dtype)),
      timeline_(timeline),
      slots_(send_slots),
      columns_(config.padded_vocab_size(ranks_) / ranks_) {
  for (int slice = 0; slice < timeline_.slices(); ++slice) {
    most_tokens_ = std::max(most_tokens_, slice_tokens(slice));
  }
  find_spans();
}

std::int64_t StageMemory::slice_tokens(int slice) const {
  return sliced() ? options_.slice_tokens[static_cast<std::size_t>(slice)] : options_.tokens;
}

std::int64_t StageMemory::stream_rows(std::int64_t tokens) const {
  const std::int64_t rows = options_.batch * tokens;
  return options_.sequence_parallel ? rows / ranks_ : rows;
}

void StageMemory::find_spans() {
  timeline_.for_each([&](const SlicePlace& place) {
    const Timeline::Passes& passes = timeline_.of(place);
    forward_.include(passes.forward, passes.forward_end());
    if (training()) backward_.include(passes.backward, passes.backward_end());
    if (passes.is_deferred()) backward_.include(passes.weight, passes.weight + passes.layers + 1);
    if (!part_.is_last(place.chunk)) return;
    const int head = training() ? passes.backward : passes.forward_end();
    head_.include(head, head);
  });
  all_.include(0, timeline_.end() - 1);
}

Arena::Block StageMemory::add(const char* name, MemoryKind kind, DType dtype, const Shape& shape, const Span& life) {
  // What no pass of this stage uses has no size.
  if (life.is_empty()) return arena_.add(name, kind, dtype, {0}, 0, 0);
  return arena_.add(name, kind, dtype, shape, life.first, life.last);
}

void StageMemory::plan() {
  plan_workspace();
  plan_exchange();
  plan_head();
  blocks_.slices.resize(static_cast<std::size_t>(timeline_.chunks() * timeline_.micro_batches() * timeline_.slices()));
  timeline_.for_each([&](const SlicePlace& place) { plan_slice(place); });
  if (!has_cache()) return;
  for (int chunk = 0; chunk < timeline_.chunks(); ++chunk) {
    for (int micro_batch = 0; micro_batch < timeline_.micro_batches(); ++micro_batch) plan_cache(chunk, micro_batch);
  }
}

StageMemory::LayerBytes StageMemory::layer_bytes(int slice) const {
  const std::int64_t tokens = slice_tokens(slice);
  const Sizes largest{options_.batch, tokens, {stream_rows(tokens), config_.hidden_size}};
  LayerBytes bytes;
  carve(largest, nullptr, nullptr, bytes);
  carve_deferred(largest, nullptr, bytes.deferred);
  return bytes;
}

void StageMemory::plan_slice(const SlicePlace& place) {
  const Timeline::Passes& passes = timeline_.of(place);
  const LayerBytes bytes = layer_bytes(place.slice);
  const std::int64_t rows = stream_rows(slice_tokens(place.slice)), h = config_.hidden_size;
  SliceBlocks& blocks = blocks_.slices[timeline_.index(place)];
  const auto activation = [&](const char* name, DType dtype, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kActivations, dtype, shape, first, last);
  };
  for (int layer = 0; layer < passes.layers; ++layer) {
    const int at = passes.forward_of(layer), last = passes.last_of(layer);
    const int written = layer > 0 ? at - 1 : part_.is_first(place.chunk) ? passes.forward : passes.received;
    LayerBlocks there;
    there.x = activation("x", dtype_, {rows, h}, written, last);
    there.kept = activation("kept", DType::kU8, {bytes.kept}, at, last);
    if (passes.is_deferred()) {
      there.again = activation("again", DType::kU8, {bytes.again}, passes.backward_of(layer), last);
      there.deferred = activation("deferred", DType::kU8, {bytes.deferred}, passes.backward_of(layer), last);
    }
    blocks.layers.push_back(there);
  }
  if (!part_.is_last(place.chunk)) return;
  const int head = training() ? passes.backward : passes.forward_end();
  blocks.final_x = activation("final_x", dtype_, {rows, h}, passes.forward_end() - 1, head);
}

void StageMemory::plan_cache(int chunk, int micro_batch) {
  const std::int64_t width = config_.hidden_size / ranks_, b = options_.batch;
  const Timeline::Passes& first = timeline_.of({chunk, micro_batch, 0});
  const Timeline::Passes& last = timeline_.of({chunk, micro_batch, timeline_.slices() - 1});
  std::vector<CacheBlocks>& caches = blocks_.caches.emplace_back();
  for (int layer = 0; layer < first.layers; ++layer) {
    CacheBlocks cache;
    if (options_.purpose == Purpose::kGeneration) {
      cache.qkv = arena_.add("key/value cache", MemoryKind::kActivations, dtype_,
                             {b, config_.max_position_embeddings, 3 * width}, 0, Arena::kForever);
    } else {
      cache.qkv = arena_.add("key/value cache", MemoryKind::kActivations, dtype_, {b, options_.tokens, 3 * width},
                             first.forward_of(layer), first.backward_of(layer));
      cache.dkv = arena_.add("key/value gradients", MemoryKind::kActivations, accumulation_,
                             {b, options_.tokens, 2 * width}, last.backward_of(layer), first.backward_of(layer));
    }
    caches.push_back(cache);
  }
}

void StageMemory::plan_workspace() {
  const std::int64_t t = options_.batch * most_tokens_, h = config_.hidden_size;
  const auto workspace = [&](const char* name, std::int64_t columns, const Span& life) {
    return add(name, MemoryKind::kWorkspace, dtype_, {t, columns}, life);
  };
  // The moments of layers: neither the first action's first nor the last one's last.
  const Span layers{all_.first + 1, all_.last - 1};
  Span backwards = backward_;
  backwards.last -= 1;
  backwards.include(head_.first, head_.last);
  if (options_.purpose == Purpose::kGeneration) {
    blocks_.cache_length =
        arena_.add("cache_length", MemoryKind::kActivations, DType::kI32, {1}, all_.first, all_.last);
  }
  blocks_.ids = arena_.add("ids", MemoryKind::kActivations, DType::kI32, {t}, all_.first, all_.last);
  Span normed = layers;
  if (!head_.is_empty()) normed.include(head_.first, head_.last);
  blocks_.normed = workspace("normed", h, normed);
  // Where the stream is shared out, the embedding is put together here.
  blocks_.branch = workspace("branch", h, options_.sequence_parallel ? all_ : layers);
  blocks_.wide = workspace("wide", config_.ffn_hidden_size() / ranks_, layers);
  blocks_.dnormed = workspace("dnormed", h, training() ? backwards : Span{});
  std::int64_t again = 0;
  for (int slice = 0; slice < timeline_.slices(); ++slice) again = std::max(again, layer_bytes(slice).again);
  const auto made_again = [&](const char* name, Span life) {
    life.first += 1;
    life.last -= 1;
    return add(name, MemoryKind::kWorkspace, DType::kU8, {again}, life);
  };
  blocks_.again_forward = made_again("again, forward", forward_);
  blocks_.again_backward = made_again("again, backward", backward_);
}

// What is under way to or from other stages, and the gradient of the residual stream, which is received, worked on and
// sent in one place.
void StageMemory::plan_exchange() {
  const Shape shape{stream_rows(most_tokens_), config_.hidden_size};
  const bool alone = part_.stages() == 1;
  if (!alone) {
    for (int slot = 0; slot < (training() ? slots_ : 1); ++slot) {
      blocks_.sent.push_back(add("sent", MemoryKind::kCommunication, dtype_, shape, all_));
    }
  }
  if (!training()) return;
  const int places = alone ? 1 : pipeline::gradient_places(slots_);
  for (int slot = 0; slot < places; ++slot) {
    const MemoryKind kind = alone ? MemoryKind::kWorkspace : MemoryKind::kCommunication;
    blocks_.gradients.push_back(add("dx", kind, dtype_, shape, alone ? backward_ : all_));
  }
}

void StageMemory::plan_head() {
  const std::int64_t t = options_.batch * most_tokens_, chunk = std::min(options_.logits_chunk, t);
  const auto activation = [&](const char* name, DType dtype, const Shape& shape) {
    return add(name, MemoryKind::kActivations, dtype, shape, head_);
  };
  const auto workspace = [&](const char* name, DType dtype, const Shape& shape) {
    return add(name, MemoryKind::kWorkspace, dtype, shape, head_);
  };
  blocks_.targets = activation("targets", DType::kI32, {t});
  blocks_.weights = activation("weights", accumulation_, {t});
  blocks_.loss = activation("loss", accumulation_, {t});
  blocks_.final_mean = activation("final_mean", accumulation_, {stream_rows(most_tokens_)});
  blocks_.final_rstd = activation("final_rstd", accumulation_, {stream_rows(most_tokens_)});
  blocks_.logits = workspace("logits", dtype_, {chunk, columns_});
  blocks_.gathered_logits = add("gathered_logits", MemoryKind::kCommunication, dtype_,
                                {training() || ranks_ == 1 ? 0 : ranks_ * chunk, columns_}, head_);
  blocks_.max = workspace("max", accumulation_, {chunk});
  blocks_.own_max = workspace("own_max", accumulation_, {chunk});
  blocks_.sum_and_target = workspace("sum_and_target", accumulation_, {2, chunk});
}

}  // namespace teratron
