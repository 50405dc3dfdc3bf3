// The plan of a stage's memory: which block lives when.
#include <algorithm>

#include "executor/stage/stage_memory.h"
#include "pipeline/send_slots.h"

namespace teratron {

StageMemory::StageMemory(const Model& model, const ExecutorOptions& options, const StageCells& cells, int tensor_ranks,
                         DType compute_dtype, const Timeline& timeline, int send_slots)
    : model_(model),
      cells_(cells),
      purpose_(options.purpose),
      batch_(options.batch),
      // A call of generation has tokens of one sequence, or a token of each.
      tokens_(purpose_ == Purpose::kGeneration ? std::max(options.tokens, options.caches) : options.tokens),
      caches_(options.caches),
      cache_tokens_(options.cache_tokens == 0 ? model.traits.longest_sequence : options.cache_tokens),
      logits_chunk_(options.logits_chunk),
      hidden_(model.traits.hidden_size),
      kept_layers_(training() ? options.kept_layers.value() : 0),
      cuts_(options.cuts.empty() ? cut_alike(batch_, {tokens_}) : options.cuts),
      recompute_(options.recompute.of(cells.stage())),
      sequence_parallel_(options.sequence_parallel),
      first_keys_(options.first_keys || window() > 0),
      position_ids_(options.position_ids),
      joint_ends_(options.schedule.vocabulary_parallel),
      tensor_ranks_(tensor_ranks),
      dtype_(compute_dtype),
      accumulation_(accumulation_dtype_of(compute_dtype)),
      timeline_(timeline),
      slots_(send_slots) {
  timeline_.for_each([&](const SliceKey& key) {
    const Call call = call_of(key);
    if (call.rows() > largest_.rows()) largest_ = call;
    most_tokens_ = std::max(most_tokens_, call.tokens);
  });
  find_spans();
}

const pipeline::MicroBatchCut& StageMemory::cut_of(int micro_batch) const {
  return pipeline::cut_of(cuts_, micro_batch);
}

StageMemory::Call StageMemory::call_of(const SliceKey& key) const {
  const pipeline::MicroBatchCut& cut = cut_of(key.micro_batch);
  return {cut.sequences, cut.slice_tokens[static_cast<std::size_t>(key.slice)]};
}

CallSizes StageMemory::sizes_of(const Call& call) const {
  return {.batch = call.batch,
          .tokens = call.tokens,
          .tensor_ranks = tensor_ranks_,
          .sequence_parallel = sequence_parallel_,
          .compute = dtype_,
          .accumulation = accumulation_};
}

void StageMemory::find_spans() {
  timeline_.for_each([&](const SliceKey& key) {
    const Timeline::Passes& passes = timeline_.of(key);
    forward_.include(passes.forward, passes.forward_end());
    if (training()) backward_.include(passes.backward, passes.backward_end());
    if (passes.is_deferred()) backward_.include(passes.weight, passes.weight + passes.layers + 1);
    const bool at_begin = joint_ends_ ? key.chunk == 0 : cells_.is_first(key.chunk);
    if (at_begin) embedding_.include(passes.embedding, training() ? passes.embedding_backward : passes.embedding);
    const bool at_end = joint_ends_ ? key.chunk + 1 == cells_.chunks() : cells_.is_last(key.chunk);
    if (at_end) {
      const int head = training() ? passes.head : passes.forward_end();
      head_.include(head, head);
    }
  });
  all_.include(0, timeline_.end() - 1);
}

Arena::Block StageMemory::add(const char* name, MemoryKind kind, DType dtype, const Shape& shape, const Span& life) {
  // A block that no pass of this stage uses has no size.
  if (life.is_empty()) return arena_.add(name, kind, dtype, {0}, 0, 0);
  return arena_.add(name, kind, dtype, shape, life.first, life.last);
}

void StageMemory::plan() {
  plan_workspace();
  plan_exchange();
  plan_inputs();
  plan_ends();
  blocks_.slices.resize(timeline_.indices());
  timeline_.for_each([&](const SliceKey& key) { plan_slice(key); });
  if (!has_cache()) return;
  for (int chunk = 0; chunk < timeline_.chunks(); ++chunk) {
    for (int micro_batch = 0; micro_batch < timeline_.micro_batches(); ++micro_batch) plan_cache(chunk, micro_batch);
  }
}

// The last layers keep more: their backward comes first, so that memory is the soonest free.
KeptActivations StageMemory::keeping(const SliceKey& key, int index) const {
  const Recompute kind = recompute(key, index);
  return {.recompute = kind,
          .has_cache = has_cache(),
          .cheap_ones = kind == Recompute::kNone && cells_.layers(key.chunk) - index <= kept_layers_};
}

StageMemory::LayerBytes StageMemory::layer_bytes(const SliceKey& key, int index, const Call& call) const {
  const CallSizes largest = sizes_of(call);
  Carver kept, again, deferred;
  layer(key.chunk, index).carve(largest, keeping(key, index), kept, again);
  layer(key.chunk, index).carve_gradients(largest, deferred);
  return {.kept = kept.bytes(), .again = again.bytes(), .deferred = deferred.bytes()};
}

void StageMemory::plan_slice(const SliceKey& key) {
  const Timeline::Passes& passes = timeline_.of(key);
  const CallSizes sizes = sizes_of(call_of(key));
  const Shape stream{sizes.stream_rows(), hidden_};
  SliceBlocks& blocks = blocks_.slices[timeline_.index(key)];
  const auto activation = [&](const char* name, DType dtype, const Shape& shape, int first, int last) {
    return arena_.add(name, MemoryKind::kActivations, dtype, shape, first, last);
  };
  const SliceKey before{key.chunk - 1, key.micro_batch, key.slice}, after{key.chunk + 1, key.micro_batch, key.slice};
  const int input_written = cells_.is_first(key.chunk)    ? passes.embedding
                            : cells_.continues(key.chunk) ? timeline_.of(before).forward_end() - 1
                                                          : passes.received;
  for (int index = 0; index < passes.layers; ++index) {
    const int at = passes.forward_of(index), last = passes.last_of(index);
    const int written = index > 0 ? at - 1 : input_written;
    const LayerBytes bytes = layer_bytes(key, index, call_of(key));
    // The layer before writes the norm of its output.
    const bool is_normed = index > 0 && keeping(key, index).cheap_ones;
    LayerBlocks there;
    there.x = activation("x", dtype_, stream, written, last);
    there.kept = activation("kept", DType::kU8, {bytes.kept}, is_normed ? at - 1 : at, last);
    if (passes.is_deferred()) {
      there.again = activation("again", DType::kU8, {bytes.again}, passes.backward_of(index), last);
      there.deferred = activation("deferred", DType::kU8, {bytes.deferred}, passes.backward_of(index), last);
    }
    blocks.layers.push_back(there);
  }
  if (cells_.is_first(key.chunk)) {
    Carver kept, memory;
    model_.carve_embedding({sizes, logits_chunk_, training()}, kept, memory);
    blocks.embedding_kept = activation("embedding kept", DType::kU8, {kept.bytes()}, passes.embedding,
                                       training() ? passes.embedding_backward : passes.embedding);
    if (joint_ends_) {
      blocks.input_gradient =
          activation("input's gradient", dtype_, stream, passes.backward_end(), passes.embedding_backward);
    }
  }
  if (training() && cells_.is_continued(key.chunk)) {
    blocks.output_gradient =
        activation("output's gradient", dtype_, stream, timeline_.of(after).backward_end(), passes.backward);
  }
  if (!cells_.is_last(key.chunk)) return;
  const int head = training() ? passes.head : passes.forward_end();
  if (joint_ends_) {
    blocks.output_gradient = activation("output's gradient", dtype_, stream, passes.head, passes.backward);
  }
  blocks.final_x = activation("final_x", dtype_, stream, passes.forward_end() - 1, head);
}

void StageMemory::plan_cache(int chunk, int micro_batch) {
  const Timeline::Passes& first = timeline_.of({chunk, micro_batch, 0});
  const Timeline::Passes& last = timeline_.of({chunk, micro_batch, timeline_.slices_of(micro_batch) - 1});
  const std::int64_t batch = cut_of(micro_batch).sequences;
  std::vector<CacheBlocks>& caches = blocks_.caches.emplace_back();
  for (int index = 0; index < first.layers; ++index) {
    const Attention& attention = layer(chunk, index).attention;
    const auto add_block = [&](const char* name, DType dtype, const Shape& shape, int from, int to) {
      return arena_.add(name, MemoryKind::kActivations, dtype, shape, from, to);
    };
    const int born = first.forward_of(index), done = first.backward_of(index);
    CacheBlocks cache;
    if (purpose_ == Purpose::kGeneration) {
      cache.keys_values =
          add_block("key/value cache", dtype_, {caches_, cache_tokens_, 2 * attention.key_width()}, 0, Arena::kForever);
      caches.push_back(cache);
      continue;
    }
    const auto of_sequence = [&](std::int64_t columns) { return Shape{batch, tokens_, columns}; };
    cache.qkv = add_block("queries, keys, values", dtype_, of_sequence(attention.qkv.outputs()), born, done);
    if (attention.key_value) {
      cache.key_value = add_block("keys, values", dtype_, of_sequence(attention.key_value->outputs()), born, done);
    }
    cache.dkv = add_block("key/value gradients", accumulation_, of_sequence(2 * attention.key_width()),
                          last.backward_of(index), done);
    caches.push_back(cache);
  }
}

void StageMemory::plan_workspace() {
  const std::int64_t t = largest_.rows();
  std::int64_t wide = 0, again = 0, heads = 0, gradient = hidden_, adapters = 0;
  for (int chunk = 0; chunk < cells_.chunks(); ++chunk) {
    for (int index = 0; index < cells_.layers(chunk); ++index) {
      wide = std::max(wide, layer(chunk, index).wide_columns());
      heads = std::max(heads, layer(chunk, index).head_columns());
      gradient = std::max(gradient, layer(chunk, index).attention.width());
      adapters = std::max(adapters, layer(chunk, index).adapter_bytes(sizes_of(largest_)));
      for (const pipeline::MicroBatchCut& cut : cuts_) {
        for (SliceKey key{.chunk = chunk}; key.slice < std::ssize(cut.slice_tokens); ++key.slice) {
          const Call call{cut.sequences, cut.slice_tokens[static_cast<std::size_t>(key.slice)]};
          again = std::max(again, layer_bytes(key, index, call).again);
        }
      }
    }
  }
  const auto workspace = [&](const char* name, std::int64_t columns, const Span& life) {
    return add(name, MemoryKind::kWorkspace, dtype_, {t, columns}, life);
  };
  Span backwards = backward_;
  backwards.include(head_.first, head_.last);
  blocks_.normed = workspace("normed", hidden_, all_);
  blocks_.branch = workspace("branch", hidden_, all_);
  // The moments of layers: neither the first action's first nor the last one's last.
  blocks_.wide = workspace("wide", wide, {all_.first + 1, all_.last - 1});
  blocks_.heads = workspace("heads", heads, {all_.first + 1, all_.last - 1});
  blocks_.adapters = add("adapters", MemoryKind::kWorkspace, DType::kU8, {adapters}, {all_.first + 1, all_.last - 1});
  blocks_.dnormed = workspace("dnormed", gradient, training() ? backwards : Span{});
  const auto made_again = [&](const char* name, Span life) {
    life.first += 1;
    life.last -= 1;
    return add(name, MemoryKind::kWorkspace, DType::kU8, {again}, life);
  };
  blocks_.again_forward = made_again("again, forward", forward_);
  blocks_.again_backward = made_again("again, backward", backward_);
}

// Plans the messages to and from other stages, and the gradient of the residual stream, which is received, worked on
// and sent in one block.
void StageMemory::plan_exchange() {
  const Shape shape{sizes_of(largest_).stream_rows(), hidden_};
  const bool alone = cells_.stages() == 1;
  if (!alone) {
    for (int slot = 0; slot < (training() ? slots_ : 1); ++slot) {
      blocks_.sent.push_back(add("sent", MemoryKind::kCommunication, dtype_, shape, all_));
    }
  }
  if (!training()) return;
  const int slots = alone ? 1 : pipeline::gradient_slots(slots_);
  for (int slot = 0; slot < slots; ++slot) {
    const MemoryKind kind = alone ? MemoryKind::kWorkspace : MemoryKind::kCommunication;
    blocks_.gradients.push_back(add("dx", kind, dtype_, shape, alone ? backward_ : all_));
  }
}

void StageMemory::plan_inputs() {
  const ModelTraits& traits = model_.traits;
  const std::int64_t t = largest_.rows();
  const auto input = [&](const char* name, DType dtype, std::int64_t elements, const Span& life, bool is_needed) {
    return add(name, MemoryKind::kActivations, dtype, {elements}, is_needed ? life : Span{});
  };
  blocks_.cache_lengths = input("cache_lengths", DType::kI32, caches_, all_, purpose_ == Purpose::kGeneration);
  blocks_.counters = input("counters", DType::kI32, 2, all_, training());
  blocks_.key_lengths = input("key_lengths", DType::kI32, batch_, all_, traits.key_lengths);
  blocks_.first_keys = input("first_keys", DType::kI32, t, all_, first_keys_);
  const bool is_rotary = rotary_config().elements > 0;
  blocks_.position_ids = input("position_ids", DType::kI32, t, is_rotary ? all_ : embedding_, position_ids_);
  blocks_.rotary = arena_.add("rotary positions", MemoryKind::kWorkspace, accumulation_,
                              {is_rotary ? most_keys() : 0, 2, rotary_config().elements / 2}, 0, Arena::kForever);
  blocks_.ids = input("ids", DType::kI32, t, embedding_, true);
  blocks_.token_types = input("token_types", DType::kI32, t, embedding_, traits.token_types);
  blocks_.targets = input("targets", DType::kI32, t, head_, traits.targets);
  blocks_.weights = input("weights", accumulation_, t, head_, traits.targets);
  blocks_.target_rows = input("target_rows", DType::kI32, t, head_, traits.sparse_targets);
  blocks_.target_numbers = input("target_numbers", DType::kI32, t, head_, traits.sparse_targets);
  blocks_.text_of_row = input("text_of_row", DType::kI32, t, head_, traits.pools != PooledTokens::kNone);
  const std::int64_t labels = traits.labels_of(batch_);
  blocks_.labels = input("labels", DType::kI32, labels, head_, traits.labels);
  blocks_.label_weights = input("label_weights", accumulation_, labels, head_, traits.labels);
}

void StageMemory::plan_ends() {
  const auto workspace = [&](const char* name, const Carver& carver, const Span& life) {
    return add(name, MemoryKind::kWorkspace, DType::kU8, {carver.bytes()}, life);
  };
  Carver kept, embedding, head;
  model_.carve_embedding(largest_end(), kept, embedding);
  model_.carve_head(largest_end(), head);
  blocks_.embedding = workspace("embedding", embedding, embedding_);
  blocks_.head = workspace("head", head, head_);
  const auto kinds = static_cast<std::int64_t>(model_.traits.losses.size());
  blocks_.losses = add("losses", MemoryKind::kWorkspace, DType::kF64, {kinds}, all_);
}

}  // namespace teratron
