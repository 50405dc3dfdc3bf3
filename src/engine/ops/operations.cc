#include "ops/operations.h"

#include <cmath>

#include "ops/argument_checks.h"

namespace teratron {

std::uint32_t Dropout::threshold() const { return static_cast<std::uint32_t>(std::lround(probability * 65536)); }

float Dropout::scale() const { return 65536.0F / static_cast<float>(65536 - threshold()); }

namespace {

// Checks lengths, if there are any: all sequences have the same number of rows.
void check_lengths(const ArgumentChecks& checks, TensorRef& lengths, std::int64_t rows) {
  if (!lengths) return;
  const std::int64_t sequences = lengths.elements();
  lengths = checks.vector("lengths", lengths, sequences, DType::kI32);
  checks.require(sequences > 0 && rows % sequences == 0, "each of the lengths is of as many rows");
}

void check_packed(const ArgumentChecks& checks, TensorRef& packed) {
  if (packed) packed = checks.vector("packed", packed, packed.elements(), DType::kU8);
}

// Checks all arguments but the weight. Returns whether there is something to compute.
bool check_forward(LinearForward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x);
  const std::int64_t inputs = checks.columns("x", args.x), outputs = checks.columns("y", args.y);
  args.y = checks.matrix("y", args.y, rows, outputs);
  args.x = checks.matrix("x", args.x, rows, inputs);
  if (args.bias) args.bias = checks.vector("bias", args.bias, outputs);
  check_lengths(checks, args.lengths, rows);
  check_packed(checks, args.packed);
  checks.require(args.activation != Activation::kTanh && args.activation != Activation::kRelu,
                 "a linear layer's activation is GELU or SiLU");
  if (args.activation == Activation::kNone) {
    checks.require(!args.activated && !args.gate, "there is no activated output or gate without an activation");
  } else {
    args.activated = checks.matrix("activated", args.activated, rows, outputs);
    if (args.gate) args.gate = checks.matrix("gate", args.gate, rows, outputs);
  }
  checks.separate({{"y", args.y}, {"activated", args.activated}}, {{"x", args.x},
                                                                   {"weight", args.weight},
                                                                   {"bias", args.bias},
                                                                   {"gate", args.gate},
                                                                   {"lengths", args.lengths},
                                                                   {"packed", args.packed}});
  return args.y.elements() > 0;
}

// Checks all arguments but the weight. Returns whether there is something to compute.
bool check_input_gradient(LinearInputGradient& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("dy", args.dy);
  const std::int64_t outputs = checks.columns("dy", args.dy), inputs = checks.columns("dx", args.dx);
  args.dx = checks.matrix("dx", args.dx, rows, inputs);
  args.dy = checks.matrix("dy", args.dy, rows, outputs);
  check_lengths(checks, args.lengths, rows);
  check_packed(checks, args.packed);
  checks.require(args.activation != Activation::kTanh && args.activation != Activation::kRelu,
                 "a linear layer's activation is GELU or SiLU");
  checks.require(static_cast<bool>(args.gate) == static_cast<bool>(args.dgate), "a gate has a gradient");
  if (args.activation == Activation::kNone) {
    checks.require(!args.pre_activation && !args.activated && !args.gate,
                   "there are no activations and no gate without an activation");
  } else {
    args.pre_activation = checks.matrix("pre_activation", args.pre_activation, rows, inputs);
    if (args.activated) args.activated = checks.matrix("activated", args.activated, rows, inputs);
    if (args.gate) {
      args.gate = checks.matrix("gate", args.gate, rows, inputs);
      args.dgate = checks.matrix("dgate", args.dgate, rows, inputs);
    }
  }
  checks.separate({{"dx", args.dx}}, {{"dy", args.dy},
                                      {"weight", args.weight},
                                      {"pre_activation", args.pre_activation},
                                      {"gate", args.gate},
                                      {"lengths", args.lengths},
                                      {"packed", args.packed}});
  checks.separate({{"activated", args.activated}, {"dgate", args.dgate}},
                  {{"dx", args.dx}, {"dy", args.dy}, {"weight", args.weight}, {"packed", args.packed}});
  checks.separate({{"activated", args.activated}}, {{"gate", args.gate}});
  checks.separate({{"dgate", args.dgate}}, {{"pre_activation", args.pre_activation}});
  if (args.dgate.data != args.gate.data) checks.separate({{"dgate", args.dgate}}, {{"gate", args.gate}});
  if (args.activated.data != args.pre_activation.data) {
    checks.separate({{"activated", args.activated}}, {{"pre_activation", args.pre_activation}});
  }
  return args.dx.elements() > 0;
}

// A weight of the compute type, or in tiles.
void check_frozen(TensorRef& weight, std::int64_t outputs, std::int64_t inputs, const ArgumentChecks& checks) {
  if (is_tiles(weight.dtype)) return checks.tiles("weight", weight, outputs, inputs);
  weight = checks.matrix("weight", weight, outputs, inputs);
}

}  // namespace

bool check_arguments(LinearForward& args, const ArgumentChecks& checks) {
  args.weight = checks.matrix("weight", args.weight, checks.columns("y", args.y), checks.columns("x", args.x));
  return check_forward(args, checks);
}

bool check_arguments(TileLinearForward& args, const ArgumentChecks& checks) {
  LinearForward& linear = args.linear;
  checks.tiles("weight", linear.weight, checks.columns("y", linear.y), checks.columns("x", linear.x));
  return check_forward(linear, checks);
}

bool check_arguments(FrozenLinearForward& args, const ArgumentChecks& checks) {
  LinearForward& linear = args.linear;
  const std::int64_t outputs = checks.columns("y", linear.y);
  check_frozen(linear.weight, outputs, checks.columns("x", linear.x), checks);
  const bool has_rows = check_forward(linear, checks);
  for (LowRankProduct& low : args.added) {
    if (!low.rows) continue;
    const std::int64_t rank = checks.columns("rows of low rank", low.rows);
    const std::int64_t columns = checks.rows("weight of low rank", low.weight);
    low.rows = checks.matrix("rows of low rank", low.rows, linear.x.dim(0), rank);
    low.weight = checks.matrix("weight of low rank", low.weight, columns, rank);
    checks.require(low.first_output >= 0 && low.first_output + columns <= outputs, "low ranks are of outputs");
    checks.separate({{"y", linear.y}, {"activated", linear.activated}},
                    {{"rows of low rank", low.rows}, {"weight of low rank", low.weight}});
  }
  return has_rows;
}

bool check_arguments(LinearInputGradient& args, const ArgumentChecks& checks) {
  args.weight = checks.matrix("weight", args.weight, checks.columns("dy", args.dy), checks.columns("dx", args.dx));
  return check_input_gradient(args, checks);
}

bool check_arguments(FrozenLinearInputGradient& args, const ArgumentChecks& checks) {
  LinearInputGradient& linear = args.linear;
  const std::int64_t inputs = checks.columns("dx", linear.dx);
  check_frozen(linear.weight, checks.columns("dy", linear.dy), inputs, checks);
  const bool has_rows = check_input_gradient(linear, checks);
  for (LowRankProduct& low : args.added) {
    if (!low.rows) continue;
    const std::int64_t rank = checks.columns("rows of low rank", low.rows);
    low.rows = checks.matrix("rows of low rank", low.rows, linear.dy.dim(0), rank);
    low.weight = checks.matrix("weight of low rank", low.weight, rank, inputs);
    checks.separate({{"dx", linear.dx}, {"activated", linear.activated}, {"dgate", linear.dgate}},
                    {{"rows of low rank", low.rows}, {"weight of low rank", low.weight}});
  }
  return has_rows;
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

bool check_arguments(NormForward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x), hidden = checks.columns("x", args.x);
  args.y = checks.matrix("y", args.y, rows, hidden);
  checks.require(static_cast<bool>(args.mean) == static_cast<bool>(args.beta),
                 "layer norm has mean and beta, RMS norm neither");
  if (args.mean) args.mean = checks.vector("mean", args.mean, rows, checks.accumulation());
  args.rstd = checks.vector("rstd", args.rstd, rows, checks.accumulation());
  args.x = checks.matrix("x", args.x, rows, hidden);
  args.gamma = checks.vector("gamma", args.gamma, hidden);
  if (args.beta) args.beta = checks.vector("beta", args.beta, hidden);
  checks.require(args.epsilon >= 0, "epsilon is not negative");
  checks.separate({{"y", args.y}, {"mean", args.mean}, {"rstd", args.rstd}},
                  {{"x", args.x}, {"gamma", args.gamma}, {"beta", args.beta}});
  return args.y.elements() > 0;
}

bool check_arguments(NormBackward& args, const ArgumentChecks& checks) {
  const std::int64_t rows = checks.rows("x", args.x), hidden = checks.columns("x", args.x);
  args.dx = checks.matrix("dx", args.dx, rows, hidden);
  if (args.dgamma) args.dgamma = checks.vector("dgamma", args.dgamma, hidden, checks.accumulation());
  checks.require(static_cast<bool>(args.dbeta) == (args.dgamma && args.mean),
                 "layer norm has mean and dbeta, RMS norm neither");
  if (args.dbeta) args.dbeta = checks.vector("dbeta", args.dbeta, hidden, checks.accumulation());
  args.dy = checks.matrix("dy", args.dy, rows, hidden);
  args.x = checks.matrix("x", args.x, rows, hidden);
  if (args.mean) args.mean = checks.vector("mean", args.mean, rows, checks.accumulation());
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

bool check_arguments(ResidualAddNorm& args, const ArgumentChecks& checks) {
  const bool has_rows = check_arguments(args.add, checks);
  check_arguments(args.norm, checks);
  const NormForward& norm = args.norm;
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

bool check_arguments(ResidualAddNormBackward& args, const ArgumentChecks& checks) {
  const bool has_rows = check_arguments(args.norm, checks);
  check_arguments(args.add, checks);
  const auto& [norm, add] = args;
  checks.same_memory({"norm.dx", norm.dx}, {"dsum", add.dsum});
  checks.separate({{"dbranch", add.dbranch}}, {{"dx", norm.dx},
                                               {"dgamma", norm.dgamma},
                                               {"dbeta", norm.dbeta},
                                               {"dy", norm.dy},
                                               {"x", norm.x},
                                               {"mean", norm.mean},
                                               {"rstd", norm.rstd},
                                               {"gamma", norm.gamma}});
  return has_rows;
}

// Checks the valid columns and lengths of either pass of the cross-entropy.
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

std::vector<TensorRef> cleared_without_rows(const NormBackward& args) {
  if (args.accumulate) return {};
  std::vector<TensorRef> gradients;
  if (args.dgamma) gradients.push_back(args.dgamma);
  if (args.dbeta) gradients.push_back(args.dbeta);
  return gradients;
}

std::vector<TensorRef> cleared_without_rows(const ResidualAddNormBackward& args) {
  return cleared_without_rows(args.norm);
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
