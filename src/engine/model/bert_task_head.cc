#include "model/bert_task_head.h"

#include <utility>

#include "model/bert_kind.h"

namespace teratron {
namespace {

// [batch, tokens, logits], seen as [batch, logits, tokens].
TensorRef by_text(TensorRef of_tokens, const LayerPass& pass) {
  TensorRef turned = of_tokens.reshape({pass.batch, pass.tokens, of_tokens.dim(-1)});
  std::swap(turned.shape[1], turned.shape[2]);
  std::swap(turned.strides[1], turned.strides[2]);
  return turned;
}

const char* name_of_layer(const ModelConfig& config) {
  if (config.head == ModelHead::kSpans) return "spans";
  return config.head == ModelHead::kClassification ? bert_kind(config.kind).class_layer : "classifier";
}

}  // namespace

BertTaskHead::BertTaskHead(const ModelConfig& config, GroupRank group)
    : kind(config.head),
      logits(config.task_logits()),
      hidden_dropout(config.hidden_dropout),
      linear(name_of_layer(config), {.inputs = config.hidden_size, .outputs = logits}, Linear::Parallel::kNone, group) {
}

void BertTaskHead::add_to(ModelTraits& traits, ModelHead kind) {
  traits.targets = kind == ModelHead::kTokens;
  traits.labels = !traits.targets;
  if (kind == ModelHead::kChoice) traits.label_sequences = kChoices;
  if (kind == ModelHead::kSpans) traits.labels_each = 2;
  traits.losses = {{"task loss", "task_loss", traits.labels}};
}

BertTaskHead::Workspace BertTaskHead::carve(const EndSizes& sizes, Carver& memory) const {
  const CallSizes& call = sizes.call;
  const std::int64_t rows = reads_tokens() ? call.rows() : call.batch;
  Workspace w{.of_rows = memory.take(call.compute, {rows, logits})};
  switch (kind) {
    case ModelHead::kChoice:  // texts that are no whole group have logits and no losses
      w.by_label = {w.of_rows.data, call.compute, {call.batch / kChoices, kChoices}};
      break;
    case ModelHead::kSpans: w.by_label = memory.take(call.compute, {call.batch, logits, call.tokens}); break;
    default: w.by_label = w.of_rows;
  }
  const std::int64_t labels = w.by_label.elements() / w.by_label.dim(-1);
  for (TensorRef* values : {&w.loss, &w.max, &w.sum, &w.target_logit}) {
    *values = memory.take(call.accumulation, {labels});
  }
  if (is_number()) w.errors.carve(labels, call, memory);
  return w;
}

void drop_texts(const LayerPass& pass, TensorRef pooled, double rate, HeadDropout place) {
  Dropout mask = pass.dropout(rate, RandomPurpose::kClassifierDropout, place);
  if (!mask.active()) return;
  mask.first_position = 0;
  mask.sequence_length = 1;
  const TensorRef texts = pooled.reshape({pass.batch, 1, pooled.dim(1)});
  pass.backend.dropout_backward({.dbranch = texts, .dsum = texts, .dropout = mask});
}

Dropout BertTaskHead::token_dropout(const LayerPass& pass) const {
  if (kind != ModelHead::kTokens) return {};
  return pass.stream_dropout(hidden_dropout, RandomPurpose::kClassifierDropout, kReadTokens);
}

TensorRef BertTaskHead::forward(const LayerPass& pass, TensorRef read, const Workspace& w) const {
  if (!reads_tokens()) drop_texts(pass, read, hidden_dropout, kPooledTexts);
  linear.forward(pass, w.of_rows, read);
  if (kind == ModelHead::kSpans) pass.backend.copy(w.by_label, by_text(w.of_rows, pass));
  return w.by_label;
}

void SquaredErrors::carve(std::int64_t labels, const CallSizes& sizes, Carver& memory) {
  target = memory.take(sizes.accumulation, {labels});
  scale = memory.take(sizes.accumulation, {labels});
  error = memory.take(sizes.compute, {labels, 1});
  factors = memory.take(sizes.compute, {3});
}

// norm_apply() is an affine map of each row, here of one column: y = (x - mean) * rstd * gamma + beta. With the target
// as the mean, a scale of 1, the error, or twice the weight gives the error, its square, or the gradient.
void SquaredErrors::find(Backend& backend, TensorRef loss, TensorRef values, const SliceInputs& inputs) const {
  const auto factor = [&](std::int64_t value) {
    const TensorRef one = factors.slice(0, value, value + 1);
    backend.fill(one, static_cast<double>(value));
    return one;
  };
  const TensorRef zero = factor(0), one = factor(1), two = factor(2);
  const auto scaled_error = [&](TensorRef rows, TensorRef gamma) {
    backend.norm_apply({.y = error, .mean = target, .rstd = rows, .x = values, .gamma = gamma, .beta = zero});
    return error.reshape({error.dim(0)});
  };
  backend.copy(target, {inputs.labels.data, DType::kF32, inputs.labels.shape});
  backend.fill(scale, 1);
  backend.copy(scale, scaled_error(scale, one));
  backend.copy(loss, scaled_error(scale, one));
  scaled_error(inputs.label_weights, two);
  backend.copy(values, error);
}

void BertTaskHead::find_losses(const LayerPass& pass, const SliceInputs& inputs, const Workspace& w) const {
  if (is_number()) return w.errors.find(pass.backend, w.loss, w.of_rows, inputs);
  pass.backend.cross_entropy_partials({.max = w.max,
                                       .sum = w.sum,
                                       .target_logit = w.target_logit,
                                       .logits = w.by_label,
                                       .targets = labels(inputs),
                                       .lengths = kind == ModelHead::kSpans ? pass.key_lengths : TensorRef(),
                                       .valid_columns = w.by_label.dim(-1)});
  pass.backend.cross_entropy_loss({.loss = w.loss, .max = w.max, .sum = w.sum, .target_logit = w.target_logit});
}

void BertTaskHead::backward(const LayerPass& pass, TensorRef dread, std::int64_t first, TensorRef read,
                            const SliceInputs& inputs, const Workspace& w) const {
  if (!is_number()) {  // whose gradient is there
    pass.backend.cross_entropy_backward({.logits = w.by_label,
                                         .max = w.max,
                                         .sum = w.sum,
                                         .targets = labels(inputs),
                                         .weight = weights(inputs),
                                         .lengths = kind == ModelHead::kSpans ? pass.key_lengths : TensorRef(),
                                         .valid_columns = w.by_label.dim(-1)});
  }
  if (kind == ModelHead::kSpans) pass.backend.copy(by_text(w.of_rows, pass), w.by_label);
  linear.backward_input(pass, dread, w.of_rows.slice(0, first, first + dread.dim(0)));
  linear.backward_weight(pass, w.of_rows, read);
  if (!reads_tokens()) drop_texts(pass, dread, hidden_dropout, kPooledTexts);
}

}  // namespace teratron
