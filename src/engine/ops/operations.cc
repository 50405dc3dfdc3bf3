#include "ops/operations.h"

#include <cmath>

#include "ops/argument_checks.h"

namespace teratron {

std::uint32_t Dropout::threshold() const { return static_cast<std::uint32_t>(std::lround(probability * 65536)); }

float Dropout::scale() const { return 65536.0F / static_cast<float>(65536 - threshold()); }

namespace {

// Checks lengths, if there are any: sequences have equally many rows.
void check_lengths(const ArgumentChecks& checks, TensorRef& lengths, std::int64_t rows) {
  if (!lengths) return;
  const std::int64_t sequences = lengths.elements();
  lengths = checks.vector("lengths", lengths, sequences, DType::kI32);
  checks.require(sequences > 0 && rows % sequences == 0, "each of the lengths is of as many rows");
}

}  // namespace

bool check_arguments(LinearForward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x);
  const std::int64_t inputs = checks.columns("x", args.x), outputs = checks.columns("y", args.y);
  args.y = checks.matrix("y", args.y, rows, outputs);
  args.x = checks.matrix("x", args.x, rows, inputs);
  args.weight = checks.matrix("weight", args.weight, outputs, inputs);
  if (args.bias) args.bias = checks.vector("bias", args.bias, outputs);
  check_lengths(checks, args.lengths, rows);
  checks.require(args.activation != Activation::kTanh, "a linear layer's activation is GELU");
  if (args.activation == Activation::kNone) {
    checks.require(!args.activated, "there is no activated output without an activation");
  } else {
    args.activated = checks.matrix("activated", args.activated, rows, outputs);
  }
  checks.separate({{"y", args.y}, {"activated", args.activated}},
                  {{"x", args.x}, {"weight", args.weight}, {"bias", args.bias}, {"lengths", args.lengths}});
  return args.y.elements() > 0;
}

bool check_arguments(LinearInputGradient& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("dy", args.dy);
  const std::int64_t outputs = checks.columns("dy", args.dy), inputs = checks.columns("dx", args.dx);
  args.dx = checks.matrix("dx", args.dx, rows, inputs);
  args.dy = checks.matrix("dy", args.dy, rows, outputs);
  args.weight = checks.matrix("weight", args.weight, outputs, inputs);
  check_lengths(checks, args.lengths, rows);
  checks.require(args.activation != Activation::kTanh, "a linear layer's activation is GELU");
  if (args.activation == Activation::kNone) {
    checks.require(!args.pre_activation && !args.activated, "there are no activations without an activation");
  } else {
    args.pre_activation = checks.matrix("pre_activation", args.pre_activation, rows, inputs);
    args.activated = checks.matrix("activated", args.activated, rows, inputs);
  }
  checks.separate(
      {{"dx", args.dx}},
      {{"dy", args.dy}, {"weight", args.weight}, {"pre_activation", args.pre_activation}, {"lengths", args.lengths}});
  checks.separate({{"activated", args.activated}}, {{"dx", args.dx}, {"dy", args.dy}, {"weight", args.weight}});
  if (args.activated.data != args.pre_activation.data) {
    checks.separate({{"activated", args.activated}}, {{"pre_activation", args.pre_activation}});
  }
  return args.dx.elements() > 0;
}

bool check_arguments(LinearWeightGradient& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x);
  const std::int64_t inputs = checks.columns("x", args.x), outputs = checks.columns("dy", args.dy);
  args.dweight = checks.matrix("dweight", args.dweight, outputs, inputs, checks.accumulation());
  args.dy = checks.matrix("dy", args.dy, rows, outputs);
  args.x = checks.matrix("x", args.x, rows, inputs);
  if (args.dbias) args.dbias = checks.vector("dbias", args.dbias, outputs, checks.accumulation());
  check_lengths(checks, args.lengths, rows);
  checks.separate({{"dweight", args.dweight}, {"dbias", args.dbias}},
                  {{"dy", args.dy}, {"x", args.x}, {"lengths", args.lengths}});
  return args.x.elements() > 0;
}

bool check_arguments(ActivationForward& args, const ArgumentChecks& checks) {
  checks.columns("x", args.x);
  checks.tensor("x", args.x, args.x.shape);
  checks.tensor("y", args.y, args.x.shape);
  checks.require(args.activation != Activation::kNone, "there is an activation");
  if (args.y.data != args.x.data) checks.separate({{"y", args.y}}, {{"x", args.x}});
  return args.x.elements() > 0;
}

bool check_arguments(ActivationBackward& args, const ArgumentChecks& checks) {
  checks.columns("x", args.x);
  checks.tensor("x", args.x, args.x.shape);
  checks.tensor("dx", args.dx, args.x.shape);
  checks.tensor("dy", args.dy, args.x.shape);
  checks.require(args.activation != Activation::kNone, "there is an activation");
  checks.separate({{"dx", args.dx}}, {{"x", args.x}});
  if (args.dx.data != args.dy.data) checks.separate({{"dx", args.dx}}, {{"dy", args.dy}});
  return args.x.elements() > 0;
}

bool check_arguments(LayerNormForward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x), hidden = checks.columns("x", args.x);
  args.y = checks.matrix("y", args.y, rows, hidden);
  args.mean = checks.vector("mean", args.mean, rows, checks.accumulation());
  args.rstd = checks.vector("rstd", args.rstd, rows, checks.accumulation());
  args.x = checks.matrix("x", args.x, rows, hidden);
  args.gamma = checks.vector("gamma", args.gamma, hidden);
  args.beta = checks.vector("beta", args.beta, hidden);
  checks.require(args.epsilon >= 0, "epsilon is not negative");
  checks.separate({{"y", args.y}, {"mean", args.mean}, {"rstd", args.rstd}},
                  {{"x", args.x}, {"gamma", args.gamma}, {"beta", args.beta}});
  return args.y.elements() > 0;
}

bool check_arguments(LayerNormBackward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x), hidden = checks.columns("x", args.x);
  args.dx = checks.matrix("dx", args.dx, rows, hidden);
  args.dgamma = checks.vector("dgamma", args.dgamma, hidden, checks.accumulation());
  args.dbeta = checks.vector("dbeta", args.dbeta, hidden, checks.accumulation());
  args.dy = checks.matrix("dy", args.dy, rows, hidden);
  args.x = checks.matrix("x", args.x, rows, hidden);
  args.mean = checks.vector("mean", args.mean, rows, checks.accumulation());
  args.rstd = checks.vector("rstd", args.rstd, rows, checks.accumulation());
  args.gamma = checks.vector("gamma", args.gamma, hidden);
  checks.separate({{"dx", args.dx}, {"dgamma", args.dgamma}, {"dbeta", args.dbeta}},
                  {{"dy", args.dy}, {"x", args.x}, {"mean", args.mean}, {"rstd", args.rstd}, {"gamma", args.gamma}});
  return args.x.elements() > 0;
}

bool check_arguments(ResidualAdd& args, const ArgumentChecks& checks) {
  checks.rank("sum", args.sum, 3);
  checks.columns("sum", args.sum);
  checks.tensor("sum", args.sum, args.sum.shape);
  checks.tensor("residual", args.residual, args.sum.shape);
  checks.tensor("branch", args.branch, args.sum.shape);
  checks.dropout(args.dropout, args.sum.dim(1));
  checks.separate({{"sum", args.sum}}, {{"branch", args.branch}});
  if (args.sum.data != args.residual.data) checks.separate({{"sum", args.sum}}, {{"residual", args.residual}});
  return args.sum.elements() > 0;
}

bool check_arguments(ResidualAddLayerNorm& args, const ArgumentChecks& checks) {
  const bool has_rows = check_arguments(args.add, checks);
  check_arguments(args.norm, checks);
  const LayerNormForward& norm = args.norm;
  checks.same_memory({"norm.x", norm.x}, {"sum", args.add.sum});
  checks.separate({{"y", norm.y}, {"mean", norm.mean}, {"rstd", norm.rstd}},
                  {{"residual", args.add.residual}, {"branch", args.add.branch}});
  checks.separate({{"sum", args.add.sum}}, {{"gamma", norm.gamma}, {"beta", norm.beta}});
  return has_rows;
}

bool check_arguments(DropoutBackward& args, const ArgumentChecks& checks) {
  checks.rank("dsum", args.dsum, 3);
  checks.columns("dsum", args.dsum);
  checks.tensor("dsum", args.dsum, args.dsum.shape);
  checks.tensor("dbranch", args.dbranch, args.dsum.shape);
  checks.dropout(args.dropout, args.dsum.dim(1));
  if (args.dbranch.data != args.dsum.data) checks.separate({{"dbranch", args.dbranch}}, {{"dsum", args.dsum}});
  return args.dsum.elements() > 0;
}

bool check_arguments(AttentionForward& args, const ArgumentChecks& checks) {
  checks.rank("q", args.q, 4);
  checks.rank("k", args.k, 4);
  const std::int64_t batch = args.q.dim(0), heads = args.q.dim(2), head_size = checks.columns("q", args.q);
  const std::int64_t queries = args.q.dim(1), keys = args.k.dim(1);
  checks.require(heads > 0, "there is at least one head");
  checks.require(keys >= queries, "the queries are the last of the keys' positions");
  checks.strided("out", args.out, {batch, queries, heads, head_size});
  checks.tensor("log_sum_exp", args.log_sum_exp, {batch, heads, queries}, checks.accumulation());
  checks.strided("q", args.q, {batch, queries, heads, head_size});
  checks.strided("k", args.k, {batch, keys, heads, head_size});
  checks.strided("v", args.v, {batch, keys, heads, head_size});
  if (args.lengths) checks.tensor("lengths", args.lengths, {batch}, DType::kI32);
  if (args.first_keys) {
    checks.tensor("first_keys", args.first_keys, {batch, queries}, DType::kI32);
    checks.require(args.causal, "documents that share a sequence are causal");
  }
  checks.require(args.scale > 0, "the scale of the scores is given");
  checks.attention_dropout(args.dropout, queries, keys, heads);
  checks.separate(
      {{"out", args.out}, {"log_sum_exp", args.log_sum_exp}},
      {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"lengths", args.lengths}, {"first_keys", args.first_keys}});
  return args.out.elements() > 0;
}

bool check_arguments(CachedAttention& args, const ArgumentChecks& checks) {
  checks.rank("q", args.q, 4);
  checks.rank("keys", args.keys, 4);
  const std::int64_t batch = args.q.dim(0), heads = args.q.dim(2), head_size = checks.columns("q", args.q);
  const std::int64_t tokens = args.q.dim(1), room = args.keys.dim(1);
  checks.require(heads > 0, "there is at least one head");
  checks.require(room >= tokens, "the cache has room for the tokens");
  for (const auto& [name, view] : {NamedView{"out", args.out}, {"q", args.q}, {"k", args.k}, {"v", args.v}}) {
    checks.strided(name, view, {batch, tokens, heads, head_size});
  }
  checks.strided("keys", args.keys, {batch, room, heads, head_size});
  checks.strided("values", args.values, {batch, room, heads, head_size});
  checks.tensor("lengths", args.lengths, {batch}, DType::kI32);
  checks.require(args.scale > 0, "the scale of the scores is given");
  checks.separate({{"out", args.out}, {"keys", args.keys}, {"values", args.values}},
                  {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"lengths", args.lengths}});
  return args.out.elements() > 0;
}

bool check_arguments(AttentionBackward& args, const ArgumentChecks& checks) {
  check_arguments(args.forward, checks);
  const AttentionForward& forward = args.forward;
  checks.strided("dq", args.dq, forward.q.shape);
  const DType kv_dtype = args.dk.dtype == checks.accumulation() ? checks.accumulation() : checks.compute();
  checks.strided("dk", args.dk, forward.k.shape, kv_dtype);
  checks.strided("dv", args.dv, forward.v.shape, kv_dtype);
  checks.strided("dout", args.dout, forward.out.shape);
  checks.separate({{"dq", args.dq}, {"dk", args.dk}, {"dv", args.dv}}, {{"dout", args.dout},
                                                                        {"q", forward.q},
                                                                        {"k", forward.k},
                                                                        {"v", forward.v},
                                                                        {"out", forward.out},
                                                                        {"log_sum_exp", forward.log_sum_exp},
                                                                        {"lengths", forward.lengths},
                                                                        {"first_keys", forward.first_keys}});
  return args.dout.elements() > 0;
}

namespace {

// Checks the positions [batch, tokens] of an embedding call. Ids in device memory are not read.
template <class Arguments>
void check_positions(const ArgumentChecks& checks, const Arguments& args, const TensorRef& table, std::int64_t batch,
                     std::int64_t tokens) {
  if (args.position_ids) return checks.tensor("position_ids", args.position_ids, {batch, tokens}, DType::kI32);
  checks.require(args.first_position >= 0 && args.first_position + tokens <= table.dim(0),
                 "every token's position has an embedding");
}

}  // namespace

bool check_arguments(EmbeddingForward& args, const ArgumentChecks& checks) {
  checks.rank("y", args.y, 3);
  const std::int64_t batch = args.y.dim(0), tokens = args.y.dim(1), hidden = checks.columns("y", args.y);
  checks.tensor("y", args.y, {batch, tokens, hidden});
  checks.tensor("ids", args.ids, {batch, tokens}, DType::kI32);
  args.tokens = checks.matrix("tokens", args.tokens, checks.rows("tokens", args.tokens), hidden);
  checks.require(args.vocab_begin >= 0, "vocab_begin is not negative");
  if (args.positions) {
    args.positions = checks.matrix("positions", args.positions, checks.rows("positions", args.positions), hidden);
    check_positions(checks, args, args.positions, batch, tokens);
  }
  checks.dropout(args.dropout, tokens);
  checks.separate(
      {{"y", args.y}},
      {{"ids", args.ids}, {"tokens", args.tokens}, {"positions", args.positions}, {"position_ids", args.position_ids}});
  return args.y.elements() > 0;
}

bool check_arguments(EmbeddingBackward& args, const ArgumentChecks& checks) {
  checks.rank("dy", args.dy, 3);
  const std::int64_t batch = args.dy.dim(0), tokens = args.dy.dim(1), hidden = checks.columns("dy", args.dy);
  checks.tensor("dy", args.dy, {batch, tokens, hidden});
  checks.tensor("ids", args.ids, {batch, tokens}, DType::kI32);
  checks.require(args.vocab_begin >= 0, "vocab_begin is not negative");
  const auto table = [&](std::string_view name, const TensorRef& view) {
    return view ? checks.matrix(name, view, checks.rows(name, view), hidden, checks.accumulation()) : view;
  };
  args.dtokens = table("dtokens", args.dtokens);
  args.dpositions = table("dpositions", args.dpositions);
  if (args.dpositions) {
    check_positions(checks, args, args.dpositions, batch, tokens);
  }
  checks.dropout(args.dropout, tokens);
  checks.separate({{"dtokens", args.dtokens}, {"dpositions", args.dpositions}},
                  {{"dy", args.dy}, {"ids", args.ids}, {"position_ids", args.position_ids}});
  return args.dy.elements() > 0 && (args.dtokens || args.dpositions);
}

// Checks the valid columns of both passes of the cross-entropy.
template <class Arguments>
void check_valid_columns(const ArgumentChecks& checks, Arguments& args, std::int64_t rows, std::int64_t columns) {
  checks.require(args.vocab_begin >= 0, "vocab_begin is not negative");
  checks.require(args.valid_columns >= 0 && args.valid_columns <= columns, "the valid columns are among the logits");
  check_lengths(checks, args.lengths, rows);
}

bool check_arguments(CrossEntropyPartials& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("logits", args.logits), columns = checks.columns("logits", args.logits);
  args.max = checks.vector("max", args.max, rows, checks.accumulation());
  args.sum = checks.vector("sum", args.sum, rows, checks.accumulation());
  args.target_logit = checks.vector("target_logit", args.target_logit, rows, checks.accumulation());
  args.logits = checks.matrix("logits", args.logits, rows, columns);
  args.targets = checks.vector("targets", args.targets, rows, DType::kI32);
  check_valid_columns(checks, args, rows, columns);
  checks.separate({{"max", args.max}, {"sum", args.sum}, {"target_logit", args.target_logit}},
                  {{"logits", args.logits}, {"targets", args.targets}, {"lengths", args.lengths}});
  return args.logits.elements() > 0;
}

bool check_arguments(CrossEntropyRescale& args, const ArgumentChecks& checks) {
  const std::int64_t rows = args.sum.elements();
  args.sum = checks.vector("sum", args.sum, rows, checks.accumulation());
  args.own_max = checks.vector("own_max", args.own_max, rows, checks.accumulation());
  args.max = checks.vector("max", args.max, rows, checks.accumulation());
  checks.separate({{"sum", args.sum}}, {{"own_max", args.own_max}, {"max", args.max}});
  return rows > 0;
}

bool check_arguments(CrossEntropyLoss& args, const ArgumentChecks& checks) {
  const std::int64_t rows = args.loss.elements();
  args.loss = checks.vector("loss", args.loss, rows, checks.accumulation());
  args.max = checks.vector("max", args.max, rows, checks.accumulation());
  args.sum = checks.vector("sum", args.sum, rows, checks.accumulation());
  args.target_logit = checks.vector("target_logit", args.target_logit, rows, checks.accumulation());
  checks.separate({{"loss", args.loss}}, {{"max", args.max}, {"sum", args.sum}, {"target_logit", args.target_logit}});
  return rows > 0;
}

bool check_arguments(CrossEntropyBackward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("logits", args.logits), columns = checks.columns("logits", args.logits);
  args.logits = checks.matrix("logits", args.logits, rows, columns);
  args.max = checks.vector("max", args.max, rows, checks.accumulation());
  args.sum = checks.vector("sum", args.sum, rows, checks.accumulation());
  args.targets = checks.vector("targets", args.targets, rows, DType::kI32);
  args.weight = checks.vector("weight", args.weight, rows, checks.accumulation());
  check_valid_columns(checks, args, rows, columns);
  checks.separate({{"logits", args.logits}}, {{"max", args.max},
                                              {"sum", args.sum},
                                              {"targets", args.targets},
                                              {"weight", args.weight},
                                              {"lengths", args.lengths}});
  return args.logits.elements() > 0;
}

bool check_arguments(WeightedSum& args, const ArgumentChecks& checks) {
  const std::int64_t rows = args.value.elements();
  args.total = checks.vector("total", args.total, 1, DType::kF64);
  args.value = checks.vector("value", args.value, rows, checks.accumulation());
  args.weight = checks.vector("weight", args.weight, rows, checks.accumulation());
  checks.separate({{"total", args.total}}, {{"value", args.value}, {"weight", args.weight}});
  return rows > 0;
}

bool check_arguments(AdamW& args, const ArgumentChecks& checks) {
  checks.require(args.correction1 > 0 && args.correction2 > 0, "the bias corrections are positive");
  const bool is_short = !args.parameters.empty() && args.parameters.front().moment1.dtype == DType::kBF16;
  const DType moments = is_short ? DType::kBF16 : checks.accumulation();
  const bool is_split = checks.compute() == DType::kBF16 && !args.parameters.empty() && args.parameters.front().working;
  for (AdamWParameter& p : args.parameters) {
    const std::int64_t size = p.value.elements();
    p.value = checks.vector("value", p.value, size, is_split ? DType::kU16 : checks.accumulation());
    p.gradient = checks.vector("gradient", p.gradient, size, checks.accumulation());
    p.moment1 = checks.vector("moment1", p.moment1, size, moments);
    p.moment2 = checks.vector("moment2", p.moment2, size, moments);
    if (p.working) p.working = checks.vector("working", p.working, size);
    checks.separate({{"value", p.value}, {"moment1", p.moment1}, {"moment2", p.moment2}, {"working", p.working}},
                    {{"gradient", p.gradient}});
    checks.require(static_cast<bool>(p.working) == static_cast<bool>(args.parameters.front().working),
                   "all parameters have a working copy or none");
  }
  std::erase_if(args.parameters, [](const AdamWParameter& p) { return p.value.elements() == 0; });
  return !args.parameters.empty();
}

std::vector<TensorRef> cleared_without_rows(const LinearWeightGradient& args) {
  if (args.accumulate) return {};
  return args.dbias ? std::vector{args.dweight, args.dbias} : std::vector{args.dweight};
}

std::vector<TensorRef> cleared_without_rows(const LayerNormBackward& args) {
  if (args.accumulate) return {};
  return {args.dgamma, args.dbeta};
}

std::vector<TensorRef> cleared_without_rows(const AttentionBackward& args) {
  if (args.accumulate_kv || args.dk.elements() == 0) return {};
  return {args.dk, args.dv};
}

std::vector<TensorRef> cleared_without_rows(const EmbeddingBackward& args) {
  std::vector<TensorRef> cleared;
  if (args.dtokens && !args.accumulate_tokens) cleared.push_back(args.dtokens);
  if (args.dpositions && !args.accumulate_positions) cleared.push_back(args.dpositions);
  return cleared;
}

}  // namespace teratron
