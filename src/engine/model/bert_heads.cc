#include "model/bert_heads.h"

#include <algorithm>

#include "model/bert_kind.h"
#include "model/bert_task_head.h"

namespace teratron {
namespace {

Parameter output_bias(const Parameter& tokens) {
  return {.name = "head.bias",
          .shape = {tokens.shape[0]},
          .padding_rows = tokens.padding_rows,
          .split = {.axis = 0},
          .group = tokens.group};
}

// Every rank computes the norm's rows alike, also where the residual stream is shared out.
Norm whole_norm(std::int64_t hidden, double epsilon, GroupRank group) {
  return {"head.norm", {.columns = hidden, .epsilon = epsilon}, group, GradientSum::kNone};
}

// Whether a task's head has a layer of its own in the pooler's place.
bool has_own_layer(const ModelConfig& config) {
  const BertKind& its = bert_kind(config.kind);
  return (config.head == ModelHead::kClassification && its.classes_have_layer) ||
         (config.head == ModelHead::kChoice && its.choices_have_layer);
}

ColumnParallelLinear order_layer(std::int64_t hidden, GroupRank group) {
  const std::int64_t padded = round_up<std::int64_t>(BertPretrainingHeads::kOrders, group.size);
  ColumnParallelLinear order("order", {.inputs = hidden, .outputs = padded}, group);
  order.weight.padding_rows = order.bias->padding_rows = padded - BertPretrainingHeads::kOrders;
  return order;
}

}  // namespace

BertPooler::BertPooler(const ModelConfig& config, GroupRank group)
    : dense(has_own_layer(config) ? "task_dense" : "pooler",
            {.inputs = config.hidden_size, .outputs = config.hidden_size}, Linear::Parallel::kNone, group),
      activation(bert_kind(config.kind).pooler),
      input_dropout(config.head == ModelHead::kClassification && bert_kind(config.kind).classes_drop_input
                        ? config.hidden_dropout
                        : 0) {}

BertPooler::Saved BertPooler::carve(const EndSizes& sizes, std::int64_t hidden, Carver& memory) {
  const auto rows = [&] { return memory.take(sizes.call.compute, {sizes.call.batch, hidden}); };
  Saved saved{.first = rows(), .sum = rows(), .pooled = rows(), .dpooled = {}, .dfirst = {}};
  if (sizes.training) {
    saved.dpooled = rows();
    saved.dfirst = rows();
  }
  return saved;
}

void BertPooler::forward(const LayerPass& pass, TensorRef encoded, const Saved& saved) const {
  pass.backend.copy(saved.first, encoded.select(1, 0));
  drop_texts(pass, saved.first, input_dropout, kPoolerInput);
  dense.forward(pass, saved.sum, saved.first);
  pass.backend.activation_forward({.y = saved.pooled, .x = saved.sum, .activation = activation});
}

void BertPooler::backward(const LayerPass& pass, const Saved& saved) const {
  pass.backend.activation_backward(
      {.dx = saved.dpooled, .dy = saved.dpooled, .x = saved.sum, .activation = activation});
  dense.backward_input(pass, saved.dfirst, saved.dpooled);
  dense.backward_weight(pass, saved.dpooled, saved.first);
  drop_texts(pass, saved.dfirst, input_dropout, kPoolerInput);
}

BertPretrainingHeads::BertPretrainingHeads(const Parameter& tokens, const ModelConfig& config, GroupRank group)
    : transform("head.transform", {.inputs = config.hidden_size, .outputs = config.hidden_size},
                Linear::Parallel::kNone, group),
      norm(whole_norm(config.hidden_size, config.layernorm_epsilon, group)),
      bias(output_bias(tokens)),
      output{.vocab_size = config.vocab_size, .vocab_begin = group.rank * tokens.shape[0]},
      activation(bert_kind(config.kind).words == Activation::kNone ? config.activation : bert_kind(config.kind).words) {
  if (!bert_kind(config.kind).orders_sentences) return;
  order = order_layer(config.hidden_size, group);
  order_output = {.vocab_size = kOrders, .vocab_begin = group.rank * order->weight.shape[0]};
}

void BertPretrainingHeads::visit(const ParameterVisitor& visitor) {
  transform.visit(visitor);
  norm.visit(visitor);
  visitor(bias);
  if (order) order->visit(visitor);
}

BertPretrainingHeads::Workspace BertPretrainingHeads::carve(const EndSizes& sizes, std::int64_t token_columns,
                                                            Carver& memory) const {
  const CallSizes& call = sizes.call;
  const std::int64_t chunk = std::min(sizes.logits_chunk, call.rows()), hidden = transform.weight.shape[0];
  const auto statistic = [&](std::int64_t rows) { return memory.take(call.accumulation, {rows}); };
  const auto rows = [&] { return memory.take(call.compute, {chunk, hidden}); };
  return {.loss = statistic(call.rows()),
          .order_loss = statistic(call.batch),
          .gathered = rows(),
          .sum = rows(),
          .activated = rows(),
          .normed = rows(),
          .dnormed = sizes.training ? rows() : TensorRef(),
          .norm = norm.carve(call, chunk, memory),
          .output = LanguageModelHead::carve(call, chunk, token_columns, memory),
          .order = order ? LanguageModelHead::carve(call, call.batch, order->weight.shape[0], memory)
                         : LanguageModelHead::Workspace()};
}

TensorRef BertPretrainingHeads::transformed(const LayerPass& pass, TensorRef encoded, TensorRef target_rows,
                                            const Workspace& w) const {
  const std::int64_t rows = target_rows.dim(0), hidden = encoded.dim(1);
  const auto first = [&](TensorRef of_chunk) { return of_chunk.slice(0, 0, rows); };
  const TensorRef activated = first(w.activated), normed = first(w.normed);
  // A gather of rows is an embedding of their numbers.
  pass.backend.embedding_forward(
      {.y = first(w.gathered).reshape({1, rows, hidden}), .ids = target_rows.reshape({1, rows}), .tokens = encoded});
  transform.forward(pass, first(w.sum), first(w.gathered), {.activation = activation, .activated = activated});
  norm.forward(pass, normed, activated, w.norm.rows(0, rows));
  return normed;
}

TensorRef BertPretrainingHeads::token_logits(const LayerPass& pass, const Parameter& tokens, TensorRef encoded,
                                             TensorRef target_rows, const Workspace& w) const {
  const TensorRef logits = w.output.logits.slice(0, 0, target_rows.dim(0));
  LinearWeights{tokens, &bias}.forward(pass, logits, transformed(pass, encoded, target_rows, w));
  return logits;
}

void BertPretrainingHeads::predict_tokens(const LayerPass& pass, const Parameter& tokens, TensorRef encoded,
                                          TensorRef drows, const SliceInputs& inputs, const Workspace& w) const {
  const std::int64_t rows = inputs.target_rows.dim(0);
  LayerPass chunk_pass = pass;
  std::int64_t begin = 0;
  do {  // once at least: without any row, gradients still become zero
    const std::int64_t end = std::min(rows, begin + w.gathered.dim(0));
    const auto first = [count = end - begin](TensorRef of_chunk) { return of_chunk.slice(0, 0, count); };
    const auto here = [&](TensorRef of_all) { return of_all.slice(0, begin, end); };
    const TensorRef normed = transformed(pass, encoded, here(inputs.target_rows), w);
    const TensorRef loss = here(w.loss), targets = here(inputs.targets);
    if (!drows) {
      output.forward(pass, {tokens, &bias}, loss, normed, targets, w.output);
    } else {
      const TensorRef sum = first(w.sum), dnormed = first(w.dnormed), dsum = normed;  // whose value is used up by then
      output.forward_backward(chunk_pass, {tokens, &bias}, loss, dnormed, normed, targets, here(inputs.weights),
                              w.output);
      norm.backward(chunk_pass, dsum, dnormed, first(w.activated), w.norm.rows(0, end - begin),
                    /*accumulate_dx=*/false);
      pass.backend.activation_backward({.dx = dsum, .dy = dsum, .x = sum, .activation = activation});
      transform.backward_weight(chunk_pass, dsum, first(w.gathered));
      transform.backward_input(pass, here(drows), dsum);
      chunk_pass.accumulate = true;
    }
    begin = end;
  } while (begin < rows);
}

void BertPretrainingHeads::predict_order(const LayerPass& pass, TensorRef pooled, TensorRef dpooled,
                                         const SliceInputs& inputs, const Workspace& w) const {
  const LinearWeights weights = order->weights();
  if (!dpooled) return order_output.forward(pass, weights, w.order_loss, pooled, inputs.labels, w.order);
  order_output.forward_backward(pass, weights, w.order_loss, dpooled, pooled, inputs.labels, inputs.label_weights,
                                w.order);
}

}  // namespace teratron
