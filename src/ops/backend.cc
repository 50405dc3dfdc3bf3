// The public members of Backend check the arguments, notify the observer, open the back end's memory and call do_*.
// Calls without rows return here, so that kernels always have something to do.
#include "ops/backend.h"

#include <cmath>

#include "base/monotonic_clock.h"
#include "ops/argument_checks.h"
#include "ops/checked_arguments.h"

namespace teratron {

// Brackets one do_* call: opens its range, notifies the observer and opens the memory; undoes that in the destructor.
class Backend::Call {
 public:
  Call(Backend& backend, std::string_view operation)
      : range_(backend, operation), announcement_(backend.observer_, operation), access_(backend) {}

 private:
  struct Announcement {
    CallObserver* observer;
    std::string_view operation;
    Announcement(CallObserver* told, std::string_view name) : observer(told), operation(name) {
      if (observer != nullptr) observer->begin(operation);
    }
    Announcement(const Announcement&) = delete;
    ~Announcement() {
      if (observer != nullptr) observer->end(operation);
    }
  };
  struct Access {
    Backend& backend;
    explicit Access(Backend& entered) : backend(entered) { backend.open_memory(); }
    Access(const Access&) = delete;
    ~Access() { backend.close_memory(); }
  };
  BackendRange range_;
  Announcement announcement_;
  Access access_;
};

std::shared_ptr<const Backend::Timestamp> Backend::timestamp() {
  struct Now final : Timestamp {
    double now = monotonic_seconds();
    double seconds() const override { return now; }
  };
  return std::make_shared<Now>();
}

std::uint32_t Dropout::threshold() const { return static_cast<std::uint32_t>(std::lround(probability * 65536)); }

float Dropout::scale() const { return 65536.0F / static_cast<float>(65536 - threshold()); }

void Backend::upload(TensorRef to, const void* from) {
  const ArgumentChecks checks("upload", compute_dtype());
  checks.present("to", to, to.dtype);
  checks.contiguous("to", to);
  if (to.elements() == 0) return;
  checks.require(from != nullptr, "there is host memory to read");
  const Call call(*this, "upload");
  do_upload(to, from);
}

void Backend::download(void* to, TensorRef from) {
  const ArgumentChecks checks("download", compute_dtype());
  checks.present("from", from, from.dtype);
  checks.contiguous("from", from);
  if (from.elements() == 0) return;
  checks.require(to != nullptr, "there is host memory to write");
  const Call call(*this, "download");
  do_download(to, from);
}

void Backend::copy(TensorRef to, TensorRef from) {
  const ArgumentChecks checks("copy", compute_dtype());
  checks.present("to", to, to.dtype);
  checks.present("from", from, is_floating(to.dtype) && is_floating(from.dtype) ? from.dtype : to.dtype);
  checks.same_shape({"from", from}, {"to", to});
  checks.separate({{"to", to}}, {{"from", from}});
  if (to.elements() == 0) return;
  const Call call(*this, "copy");
  do_copy(to, from);
}

void Backend::fill_zero(TensorRef view) {
  const ArgumentChecks checks("fill_zero", compute_dtype());
  checks.present("view", view, view.dtype);
  checks.contiguous("view", view);
  if (view.elements() == 0) return;
  const Call call(*this, "fill_zero");
  do_fill(view, 0);
}

void Backend::fill_normal(TensorRef view, const RandomStream& random, std::int64_t first_index, double stddev,
                          std::int64_t row_stride) {
  const ArgumentChecks checks("fill_normal", compute_dtype());
  checks.floating("view", view);
  checks.present("view", view, view.dtype);
  checks.require(first_index >= 0, "first_index is not negative");
  if (view.elements() == 0) return;
  const std::int64_t columns = checks.columns("view", view);
  view = checks.matrix("view", view, checks.rows("view", view), columns, view.dtype);
  checks.require(row_stride == 0 || row_stride >= columns, "a row's numbers end before the next row's");
  const Call call(*this, "fill_normal");
  do_fill_normal(view, random, first_index, stddev, row_stride == 0 ? columns : row_stride);
}

void Backend::fill(TensorRef view, double value) {
  const ArgumentChecks checks("fill", compute_dtype());
  checks.floating("view", view);
  view = checks.vector("view", view, view.elements(), view.dtype);
  if (view.elements() == 0) return;
  const Call call(*this, "fill");
  do_fill(view, value);
}

void Backend::add(TensorRef to, TensorRef from) {
  const ArgumentChecks checks("add", compute_dtype());
  checks.floating("to", to);
  checks.same_shape({"from", from}, {"to", to});
  to = checks.vector("to", to, to.elements(), to.dtype);
  from = checks.vector("from", from, from.elements(), to.dtype);
  checks.separate({{"to", to}}, {{"from", from}});
  if (to.elements() == 0) return;
  const Call call(*this, "add");
  do_add(to, from);
}

void Backend::linear_forward(const LinearForward& args) {
  const LinearForward valid = checked(args, compute_dtype());
  if (valid.y.elements() == 0) return;
  const Call call(*this, "linear_forward");
  do_linear_forward(valid);
}

void Backend::linear_input_gradient(const LinearInputGradient& args) {
  const LinearInputGradient valid = checked(args, compute_dtype());
  if (valid.dx.elements() == 0) return;
  const Call call(*this, "linear_input_gradient");
  do_linear_input_gradient(valid);
}

void Backend::linear_weight_gradient(const LinearWeightGradient& args) {
  const LinearWeightGradient valid = checked(args, compute_dtype());
  const bool no_rows = valid.x.elements() == 0;
  if (no_rows && valid.accumulate) return;
  const Call call(*this, "linear_weight_gradient");
  if (!no_rows) return do_linear_weight_gradient(valid);
  do_fill(valid.dweight, 0);
  if (valid.dbias) do_fill(valid.dbias, 0);
}

void Backend::layer_norm_forward(const LayerNormForward& args) {
  const LayerNormForward valid = checked(args, compute_dtype());
  if (valid.y.elements() == 0) return;
  const Call call(*this, "layer_norm_forward");
  do_layer_norm_forward(valid);
}

void Backend::layer_norm_apply(const LayerNormForward& args) {
  const LayerNormForward valid = checked(args, compute_dtype());
  if (valid.y.elements() == 0) return;
  const Call call(*this, "layer_norm_apply");
  do_layer_norm_apply(valid);
}

void Backend::layer_norm_backward(const LayerNormBackward& args) {
  const LayerNormBackward valid = checked(args, compute_dtype());
  const bool no_rows = valid.x.elements() == 0;
  if (no_rows && valid.accumulate) return;
  const Call call(*this, "layer_norm_backward");
  if (!no_rows) return do_layer_norm_backward(valid);
  do_fill(valid.dgamma, 0);
  do_fill(valid.dbeta, 0);
}

void Backend::residual_add(const ResidualAdd& args) {
  const ResidualAdd valid = checked(args, compute_dtype());
  if (valid.sum.elements() == 0) return;
  const Call call(*this, "residual_add");
  do_residual_add(valid);
}

void Backend::residual_add_layer_norm(const ResidualAdd& add, const LayerNormForward& norm) {
  const ResidualAdd valid_add = checked(add, compute_dtype());
  const LayerNormForward valid_norm = checked(norm, compute_dtype());
  const ArgumentChecks checks("residual_add_layer_norm", compute_dtype());
  checks.same_memory({"norm.x", norm.x}, {"sum", add.sum});
  checks.separate({{"y", norm.y}, {"mean", norm.mean}, {"rstd", norm.rstd}},
                  {{"residual", add.residual}, {"branch", add.branch}});
  checks.separate({{"sum", add.sum}}, {{"gamma", norm.gamma}, {"beta", norm.beta}});
  if (valid_add.sum.elements() == 0) return;
  const Call call(*this, "residual_add_layer_norm");
  do_residual_add_layer_norm(valid_add, valid_norm);
}

void Backend::dropout_backward(TensorRef dbranch, TensorRef dsum, const Dropout& dropout) {
  const ArgumentChecks checks("dropout_backward", compute_dtype());
  checks.rank("dsum", dsum, 3);
  checks.columns("dsum", dsum);
  checks.tensor("dsum", dsum, dsum.shape);
  checks.tensor("dbranch", dbranch, dsum.shape);
  checks.dropout(dropout, dsum.dim(1));
  if (dbranch.data != dsum.data) checks.separate({{"dbranch", dbranch}}, {{"dsum", dsum}});
  if (dsum.elements() == 0) return;
  const Call call(*this, "dropout_backward");
  do_dropout_backward(dbranch, dsum, dropout);
}

void Backend::attention_forward(const AttentionForward& args) {
  const AttentionForward valid = checked(args, compute_dtype());
  if (valid.out.elements() == 0) return;
  const Call call(*this, "attention_forward");
  do_attention_forward(valid);
}

void Backend::attention_backward(const AttentionBackward& args) {
  const AttentionBackward valid = checked(args, compute_dtype());
  const bool no_queries = valid.dout.elements() == 0;
  if (no_queries && (valid.accumulate_kv || valid.dk.elements() == 0)) return;
  const Call call(*this, "attention_backward");
  if (!no_queries) return do_attention_backward(valid);
  for (const TensorRef& gradient : {valid.dk, valid.dv}) {
    for (std::int64_t b = 0; b < gradient.dim(0); ++b) {
      for (std::int64_t s = 0; s < gradient.dim(1); ++s) {
        for (std::int64_t h = 0; h < gradient.dim(2); ++h) do_fill(gradient.select(0, b).select(0, s).select(0, h), 0);
      }
    }
  }
}

void Backend::cached_attention(const CachedAttention& args) {
  const CachedAttention valid = checked(args, compute_dtype());
  if (valid.out.elements() == 0) return;
  const Call call(*this, "cached_attention");
  do_cached_attention(valid);
}

void Backend::do_cached_attention(const CachedAttention& args) {
  const std::int64_t tokens = args.q.dim(1), begin = *args.length.as<std::int32_t>(), end = begin + tokens;
  check(begin >= 0 && end <= args.keys.dim(1), "the cache has room for the tokens");
  const TensorRef keys = args.keys.slice(1, 0, end), values = args.values.slice(1, 0, end);
  do_copy(keys.slice(1, begin, end), args.k);
  do_copy(values.slice(1, begin, end), args.v);
  const Tensor log_sum_exp(*this, accumulation_dtype(), {args.q.dim(0), args.q.dim(2), tokens});
  do_attention_forward(
      {.out = args.out, .log_sum_exp = log_sum_exp.ref(), .q = args.q, .k = keys, .v = values, .scale = args.scale});
}

void Backend::replay(std::unique_ptr<Graph>& graph, const std::function<void()>& work) {
  observer_ == nullptr ? do_replay(graph, work) : work();
}

void Backend::embedding_forward(const EmbeddingForward& args) {
  const EmbeddingForward valid = checked(args, compute_dtype());
  if (valid.y.elements() == 0) return;
  const Call call(*this, "embedding_forward");
  do_embedding_forward(valid);
}

void Backend::embedding_backward(const EmbeddingBackward& args) {
  const EmbeddingBackward valid = checked(args, compute_dtype());
  const bool no_rows = valid.dy.elements() == 0;
  const bool keeps_tokens = !valid.dtokens || valid.accumulate_tokens;
  const bool keeps_positions = !valid.dpositions || valid.accumulate_positions;
  if ((no_rows && keeps_tokens && keeps_positions) || (!valid.dtokens && !valid.dpositions)) return;
  const Call call(*this, "embedding_backward");
  if (!no_rows) return do_embedding_backward(valid);
  if (!keeps_tokens) do_fill(valid.dtokens, 0);
  if (!keeps_positions) do_fill(valid.dpositions, 0);
}

void Backend::cross_entropy_partials(const CrossEntropyPartials& args) {
  const CrossEntropyPartials valid = checked(args, compute_dtype());
  if (valid.logits.elements() == 0) return;
  const Call call(*this, "cross_entropy_partials");
  do_cross_entropy_partials(valid);
}

void Backend::cross_entropy_rescale(TensorRef sum, TensorRef own_max, TensorRef max) {
  const ArgumentChecks checks("cross_entropy_rescale", compute_dtype());
  const std::int64_t rows = sum.elements();
  sum = checks.vector("sum", sum, rows, checks.accumulation());
  own_max = checks.vector("own_max", own_max, rows, checks.accumulation());
  max = checks.vector("max", max, rows, checks.accumulation());
  checks.separate({{"sum", sum}}, {{"own_max", own_max}, {"max", max}});
  if (rows == 0) return;
  const Call call(*this, "cross_entropy_rescale");
  do_cross_entropy_rescale(sum, own_max, max);
}

void Backend::cross_entropy_loss(TensorRef loss, TensorRef max, TensorRef sum, TensorRef target_logit) {
  const ArgumentChecks checks("cross_entropy_loss", compute_dtype());
  const std::int64_t rows = loss.elements();
  loss = checks.vector("loss", loss, rows, checks.accumulation());
  max = checks.vector("max", max, rows, checks.accumulation());
  sum = checks.vector("sum", sum, rows, checks.accumulation());
  target_logit = checks.vector("target_logit", target_logit, rows, checks.accumulation());
  checks.separate({{"loss", loss}}, {{"max", max}, {"sum", sum}, {"target_logit", target_logit}});
  if (rows == 0) return;
  const Call call(*this, "cross_entropy_loss");
  do_cross_entropy_loss(loss, max, sum, target_logit);
}

void Backend::cross_entropy_backward(const CrossEntropyBackward& args) {
  const CrossEntropyBackward valid = checked(args, compute_dtype());
  if (valid.logits.elements() == 0) return;
  const Call call(*this, "cross_entropy_backward");
  do_cross_entropy_backward(valid);
}

void Backend::adamw(const AdamW& args) {
  const AdamW valid = checked(args, compute_dtype());
  if (valid.parameter.elements() == 0) return;
  const Call call(*this, "adamw");
  do_adamw(valid);
}

double Backend::sum_of_squares(TensorRef view) {
  const ArgumentChecks checks("sum_of_squares", compute_dtype());
  checks.floating("view", view);
  view = checks.vector("view", view, view.elements(), view.dtype);
  if (view.elements() == 0) return 0;
  const Call call(*this, "sum_of_squares");
  return do_sum_of_squares(view);
}

}  // namespace teratron
