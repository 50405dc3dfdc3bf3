#include "model/text_vector_head.h"

namespace teratron {
namespace {

// A vector of zeros has no direction; its unit vector is zeros, too. Far below the mean square of any other.
constexpr double kEpsilon = 1e-30;

PooledTokens pooled_tokens(Pooling pooling) {
  switch (pooling) {
    case Pooling::kCls: return PooledTokens::kFirst;
    case Pooling::kLastToken: return PooledTokens::kLast;
    case Pooling::kMean:
    case Pooling::kMeanSqrtLength: return PooledTokens::kAll;
    default: break;
  }
  throw InternalError("a pooling that cannot be trained");
}

// Elements (n, n) of a square matrix, [n, 1].
TensorRef diagonal(TensorRef matrix) {
  TensorRef elements = matrix.slice(1, 0, 1);
  elements.strides[0] += matrix.strides[1];
  return elements;
}

}  // namespace

void TextVectorHead::add_to(ModelTraits& traits, const TextVectors& settings) {
  traits.targets = false;
  traits.labels = true;
  traits.label_sequences = settings.texts;
  traits.labels_are_places = !settings.are_similarities;
  if (settings.texts > 1) traits.pools = pooled_tokens(settings.pooling);
  traits.losses = {{"task loss", "task_loss", true}};
}

TextVectorHead::Workspace TextVectorHead::carve(const EndSizes& sizes, Carver& memory) const {
  const CallSizes& call = sizes.call;
  const std::int64_t texts = call.batch, examples = texts / settings.texts;
  const auto of_texts = [&](bool is_needed) {
    return is_needed ? memory.take(call.compute, {texts, hidden}) : TensorRef();
  };
  Workspace w{.sums = memory.take(call.accumulation, {texts, hidden}),
              .pooled = of_texts(true),
              .unit = of_texts(true),
              .dunit = of_texts(sizes.training),
              .dpooled = of_texts(sizes.training),
              .ones = memory.take(call.compute, {hidden}),
              .rstd = memory.take(call.accumulation, {texts})};
  w.products = memory.take(call.compute, {examples, texts - examples});
  w.logits = memory.take(call.compute, {examples, texts - examples});
  for (TensorRef* values : {&w.loss, &w.max, &w.sum, &w.target_logit}) {
    *values = memory.take(call.accumulation, {examples});
  }
  if (!settings.are_similarities) return w;
  w.cosines = memory.take(call.compute, {examples, 1});
  w.errors.carve(examples, call, memory);
  return w;
}

// A text's vector is the sum of its tokens' vectors, over a number that all texts share: cosines do not see the length
// of a vector. The sum is an embedding's gradient, with the number of the text as the id of its tokens.
void TextVectorHead::find_losses(const LayerPass& pass, TensorRef rows, const SliceInputs& inputs,
                                 const Workspace& w) const {
  Backend& backend = pass.backend;
  const std::int64_t count = rows.dim(0);
  backend.embedding_backward(
      {.dtokens = w.sums, .dy = rows.reshape({1, count, hidden}), .ids = inputs.text_of_row.reshape({1, count})});
  backend.scale_add(w.pooled, 0, w.sums, 1.0 / static_cast<double>(pass.sequence_length));
  // An RMS norm makes every vector as long as the root of `hidden`.
  backend.fill(w.ones, 1);
  backend.norm_forward({.y = w.unit, .rstd = w.rstd, .x = w.pooled, .gamma = w.ones, .epsilon = kEpsilon});
  backend.linear_forward({.y = w.products, .x = first_texts(w.unit, w), .weight = candidates(w.unit, w)});
  backend.scale_add(w.logits, 0, w.products, scale());
  if (settings.are_similarities) {
    backend.copy(w.cosines, diagonal(w.logits));
    w.errors.find(backend, w.loss, w.cosines, inputs);
    return;
  }
  backend.cross_entropy_partials({.max = w.max,
                                  .sum = w.sum,
                                  .target_logit = w.target_logit,
                                  .logits = w.logits,
                                  .targets = inputs.labels,
                                  .valid_columns = w.logits.dim(1)});
  backend.cross_entropy_loss({.loss = w.loss, .max = w.max, .sum = w.sum, .target_logit = w.target_logit});
}

void TextVectorHead::find_logit_gradients(Backend& backend, const SliceInputs& inputs, const Workspace& w) const {
  if (settings.are_similarities) {
    backend.fill_zero(w.logits);
    backend.copy(diagonal(w.logits), w.cosines);
    return;
  }
  backend.cross_entropy_backward({.logits = w.logits,
                                  .max = w.max,
                                  .sum = w.sum,
                                  .targets = inputs.labels,
                                  .weight = inputs.label_weights,
                                  .valid_columns = w.logits.dim(1)});
}

void TextVectorHead::backward(const LayerPass& pass, TensorRef drows, std::int64_t first, const SliceInputs& inputs,
                              const Workspace& w) const {
  Backend& backend = pass.backend;
  find_logit_gradients(backend, inputs, w);
  const TensorRef dproducts = w.products, dcandidates = w.sums.slice(0, 0, w.logits.dim(1));
  backend.scale_add(dproducts, 0, w.logits, scale());
  backend.linear_input_gradient({.dx = first_texts(w.dunit, w), .dy = dproducts, .weight = candidates(w.unit, w)});
  backend.linear_weight_gradient({.dweight = dcandidates, .dy = dproducts, .x = first_texts(w.unit, w)});
  backend.copy(candidates(w.dunit, w), dcandidates);
  backend.norm_backward({.dx = w.dpooled, .dy = w.dunit, .x = w.pooled, .rstd = w.rstd, .gamma = w.ones});
  const TensorRef dsums = w.unit;  // whose value is used up
  backend.scale_add(dsums, 0, w.dpooled, 1.0 / static_cast<double>(pass.sequence_length));
  const std::int64_t here = drows.dim(0);
  backend.embedding_forward({.y = drows.reshape({1, here, hidden}),
                             .ids = inputs.text_of_row.slice(0, first, first + here).reshape({1, here}),
                             .tokens = dsums});
}

}  // namespace teratron
