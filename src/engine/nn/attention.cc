#include "nn/attention.h"

#include <cmath>

namespace teratron {
namespace {

bool is_grouped(const AttentionConfig& config) { return config.key_heads != config.heads; }

// Ranks that hold the same key heads.
int replicas_of(const AttentionConfig& config, GroupRank group) {
  return std::max(1, group.size / static_cast<int>(config.key_heads));
}

Linear::Config projection_in(const AttentionConfig& config, std::int64_t outputs, std::int64_t blocks) {
  using enum AdapterConfig::Target;
  const std::pair<AdapterConfig::Target, std::string> query{kQuery, "query"}, key{kKey, "key"}, value{kValue, "value"};
  return {.inputs = config.hidden_size,
          .outputs = outputs,
          .bias = config.bias,
          .blocks = blocks,
          .of_all_tokens = true,
          .adapters = blocks == 1   ? LayerAdapters::of(config.adapters, {query})
                      : blocks == 2 ? LayerAdapters::of(config.adapters, {key, value})
                                    : LayerAdapters::of(config.adapters, {query, key, value})};
}

// A view of the beginning of workspace memory.
TensorRef beginning(TensorRef memory, const Shape& shape) { return {memory.data, memory.dtype, shape}; }

}  // namespace

Attention::Attention(const std::string& name, const AttentionConfig& config, std::int64_t layer_index, GroupRank group)
    : qkv(name + (is_grouped(config) ? ".query" : ".qkv"),
          projection_in(config, (is_grouped(config) ? 1 : 3) * config.heads * config.head_size,
                        is_grouped(config) ? 1 : 3),
          group),
      projection(name + ".projection",
                 {.inputs = config.heads * config.head_size,
                  .outputs = config.hidden_size,
                  .bias = config.output_bias,
                  .init_scale = config.residual_scale,
                  .of_all_tokens = true,
                  .adapters = LayerAdapters::of(config.adapters, {{AdapterConfig::kOutput, ""}})},
                 group),
      heads(config.heads / group.size),
      key_heads(std::max<std::int64_t>(1, config.key_heads / group.size)),
      first_head(group.rank * heads),
      all_heads(config.heads),
      head_size(config.head_size),
      layer(layer_index),
      window(config.window),
      dropout(config.dropout),
      causal(config.causal),
      rotary(config.rotary) {
  if (is_grouped(config)) {
    Linear::Config both = projection_in(config, 2 * config.key_heads * config.head_size, 2);
    both.replicas = replicas_of(config, group);
    key_value.emplace(name + ".key_value", both, group);
  }
  if (config.head_norm) {
    query_norm.emplace(name + ".query_norm", *config.head_norm, group, GradientSum::kOverRanks);
    key_norm.emplace(name + ".key_norm", *config.head_norm, group, GradientSum::kOverRanks);
  }
}

void Attention::visit(const ParameterVisitor& visitor) {
  qkv.visit(visitor);
  if (key_value) key_value->visit(visitor);
  if (query_norm) query_norm->visit(visitor);
  if (key_norm) key_norm->visit(visitor);
  projection.visit(visitor);
}

void Attention::add_to(Work& work) const {
  for_each_linear(*this, [&](const Linear& linear) { linear.add_to(work); });
  work.attention = {.heads = heads, .key_heads = key_heads, .head_size = head_size, .window = window, .causal = causal};
  work.projected_columns = projected_columns();
}

void Attention::carve(const CallSizes& sizes, bool has_cache, Carver& projected, Carver& scores, Saved& saved) const {
  const std::int64_t b = sizes.batch, s = sizes.tokens;
  if (!has_cache) {
    saved.qkv = projected.take(sizes.compute, {b, s, qkv.outputs()});
    if (key_value) saved.key_value = projected.take(sizes.compute, {b, s, key_value->outputs()});
  }
  if (query_norm) {
    saved.queries = projected.take(sizes.compute, {b, s, heads, head_size});
    saved.query_norm = query_norm->carve(sizes, b * s * heads, projected);
  }
  if (key_norm) {
    saved.keys = projected.take(sizes.compute, {b, s, key_heads, head_size});
    saved.key_norm = key_norm->carve(sizes, b * s * key_heads, projected);
  }
  saved.context = scores.take(sizes.compute, {b, s, width()});
  saved.log_sum_exp = scores.take(sizes.accumulation, {b, heads, s});
}

TensorRef Attention::part(TensorRef keys_and_values, int number) const {
  return keys_and_values.reshape({keys_and_values.dim(0), keys_and_values.dim(1), 2, key_heads, head_size})
      .select(2, number);
}

Attention::Heads Attention::by_head(const LayerPass& pass, TensorRef first, TensorRef second) const {
  const std::int64_t tokens = first.dim(1);
  if (key_value) {
    return {.q = first.reshape({pass.batch, tokens, heads, head_size}), .k = part(second, 0), .v = part(second, 1)};
  }
  const TensorRef packed = first.reshape({pass.batch, tokens, 3, heads, head_size});
  return {.q = packed.select(2, 0), .k = packed.select(2, 1), .v = packed.select(2, 2)};
}

Attention::Heads Attention::seen(const LayerPass& pass, const Saved& saved) const {
  const std::int64_t begin = pass.first_position, end = begin + pass.tokens;
  const Heads all = by_head(pass, saved.qkv, saved.key_value);
  return {.q = all.q.slice(1, begin, end), .k = all.k.slice(1, 0, end), .v = all.v.slice(1, 0, end)};
}

void Attention::forward(const LayerPass& pass, TensorRef y, TensorRef x, const Saved& saved, const Workspace& w) const {
  // A slice's rows lie side by side in the projections of one sequence, apart in those of several.
  const std::int64_t begin = pass.first_position, end = begin + pass.tokens;
  const auto rows_of = [&](TensorRef whole) { return whole ? whole.slice(1, begin, end) : TensorRef(); };
  const TensorRef own_qkv = rows_of(saved.qkv), own_key_value = rows_of(saved.key_value);
  const bool in_place = saved.qkv && own_qkv.is_contiguous();
  const TensorRef first = in_place ? own_qkv : w.qkv, second = in_place ? own_key_value : w.key_value;
  qkv.forward(pass, first, x);
  if (key_value) key_value->forward(pass, second, x);
  const Heads own = by_head(pass, first, second);
  position(pass, own, saved, w);
  if (saved.qkv && !in_place) {
    pass.backend.copy(own_qkv, first);
    if (key_value) pass.backend.copy(own_key_value, second);
  }
  attend(pass, own, saved);
  projection.forward(pass, y, saved.context);
}

void Attention::attend(const LayerPass& pass, const Heads& own, const Saved& saved) const {
  if (!saved.cache) return pass.backend.attention_forward(call(pass, seen(pass, saved), saved));
  const TensorRef keys = part(saved.cache, 0), values = part(saved.cache, 1);
  if (pass.is_next_token()) {
    return pass.backend.cached_attention({.out = saved.context.reshape(own.q.shape),
                                          .q = own.q,
                                          .k = own.k,
                                          .v = own.v,
                                          .keys = keys,
                                          .values = values,
                                          .lengths = pass.cache_lengths,
                                          .scale = scale(),
                                          .window = window});
  }
  const std::int64_t begin = pass.first_position, end = begin + pass.tokens;
  pass.backend.copy(keys.slice(1, begin, end), own.k);
  pass.backend.copy(values.slice(1, begin, end), own.v);
  pass.backend.attention_forward(
      call(pass, {.q = own.q, .k = keys.slice(1, 0, end), .v = values.slice(1, 0, end)}, saved));
}

// Norms queries and keys, and rotates them by their positions.
void Attention::position(const LayerPass& pass, const Heads& own, const Saved& saved, const Workspace& w) const {
  const auto normed = [&](const Norm& norm, TensorRef heads_of, TensorRef kept, const Norm::Saved& statistics) {
    const TensorRef result = beginning(w.heads, kept.shape);
    pass.backend.copy(kept, heads_of);
    norm.forward(pass, result, kept, statistics);
    pass.backend.copy(heads_of, result);
  };
  if (query_norm) normed(*query_norm, own.q, saved.queries, saved.query_norm);
  if (key_norm) normed(*key_norm, own.k, saved.keys, saved.key_norm);
  rotate(pass, own.q, /*inverse=*/false);
  rotate(pass, own.k, /*inverse=*/false);
}

// The gradients of normed and rotated queries and keys become those of the projections' results.
void Attention::position_backward(const LayerPass& pass, const Heads& gradients, const Saved& saved,
                                  const Workspace& w) const {
  rotate(pass, gradients.q, /*inverse=*/true);
  rotate(pass, gradients.k, /*inverse=*/true);
  const auto backward_norm = [&](const Norm& norm, TensorRef gradient, TensorRef kept, const Norm::Saved& statistics) {
    const TensorRef dy = beginning(w.dcontext, kept.shape), dx = beginning(w.heads, kept.shape);
    pass.backend.copy(dy, gradient);
    norm.backward(pass, dx, dy, kept, statistics, /*accumulate_dx=*/false);
    pass.backend.copy(gradient, dx);
  };
  if (query_norm) backward_norm(*query_norm, gradients.q, saved.queries, saved.query_norm);
  if (key_norm) backward_norm(*key_norm, gradients.k, saved.keys, saved.key_norm);
}

void Attention::rotate(const LayerPass& pass, TensorRef rotated, bool inverse) const {
  if (rotary.elements == 0) return;
  pass.backend.rotary({.x = rotated,
                       .table = pass.rotary,
                       .first_position = pass.first_position,
                       .position_ids = pass.position_ids,
                       .pairs = rotary.pairs,
                       .inverse = inverse});
}

void Attention::recompute_context(const LayerPass& pass, const Saved& saved) const {
  pass.backend.attention_forward(call(pass, seen(pass, saved), saved));
}

void Attention::backward(const LayerPass& pass, TensorRef dx, TensorRef dy, TensorRef x, const Saved& saved,
                         const Workspace& w) const {
  projection.backward_input(pass, w.dcontext, dy);
  projection.backward_weight(pass, dy, saved.context);
  const Heads gradients = by_head(pass, w.qkv, w.key_value);
  backward_heads(pass, gradients, w.dcontext.reshape({pass.batch, pass.tokens, heads, head_size}), saved);
  position_backward(pass, gradients, saved, w);
  if (key_value) return qkv.backward_with(*key_value, pass, dx, w.qkv, w.key_value, x, w.share);
  qkv.backward(pass, dx, w.qkv, x);
}

void Attention::backward_heads(const LayerPass& pass, const Heads& gradients, TensorRef dout,
                               const Saved& saved) const {
  const AttentionForward forward = call(pass, seen(pass, saved), saved);
  if (!saved.dkv) {
    pass.backend.attention_backward(
        {.dq = gradients.q, .dk = gradients.k, .dv = gradients.v, .dout = dout, .forward = forward});
    return;
  }
  // The last slice comes first and overwrites. Sums stay in A until the slice of the keys themselves has added its own.
  const std::int64_t begin = pass.first_position, end = begin + pass.tokens;
  const TensorRef dkeys = part(saved.dkv, 0).slice(1, 0, end), dvalues = part(saved.dkv, 1).slice(1, 0, end);
  pass.backend.attention_backward({.dq = gradients.q,
                                   .dk = dkeys,
                                   .dv = dvalues,
                                   .dout = dout,
                                   .forward = forward,
                                   .accumulate_kv = end < pass.sequence_length});
  pass.backend.copy(gradients.k, dkeys.slice(1, begin, end));
  pass.backend.copy(gradients.v, dvalues.slice(1, begin, end));
}

void Attention::weight_gradients(const LayerPass& pass, TensorRef dy, TensorRef dqkv, TensorRef dkey_value, TensorRef x,
                                 const Saved& saved) const {
  projection.backward_weight(pass, dy, saved.context, /*alone=*/true);
  qkv.backward_weight(pass, dqkv, x, /*alone=*/true);
  if (key_value) key_value->backward_weight(pass, dkey_value, x, /*alone=*/true);
}

double Attention::scale() const { return 1.0 / std::sqrt(static_cast<double>(head_size)); }

AttentionForward Attention::call(const LayerPass& pass, const Heads& sequences, const Saved& saved) const {
  AttentionForward args{.out = saved.context.reshape({pass.batch, pass.tokens, heads, head_size}),
                        .log_sum_exp = saved.log_sum_exp,
                        .q = sequences.q,
                        .k = sequences.k,
                        .v = sequences.v,
                        .lengths = pass.key_lengths,
                        .first_keys = pass.first_keys,
                        .causal = causal,
                        .scale = scale(),
                        .dropout = pass.dropout(dropout, RandomPurpose::kAttentionDropout, layer)};
  args.dropout.heads = all_heads;
  args.dropout.first_head = first_head;
  return args;
}

}  // namespace teratron
