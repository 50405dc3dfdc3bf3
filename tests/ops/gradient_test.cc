// Every backward operation of the reference back end is the derivative of its forward operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/gradient_check.h"

namespace teratron::testing {
namespace {

Dropout half_dropped(RandomPurpose purpose, std::int64_t tokens) {
  return {.probability = 0.5,
          .random = {.seed = 11, .purpose = purpose, .stream = 3, .step = 5},
          .first_sample = 2,
          .sequence_length = tokens + 4,
          .first_position = 3,
          .first_head = 1,
          .heads = 8};
}

// hidden = activation(x w1^T + b1), y = hidden w2^T + b2: all three linear operations, and the activation in the input
// gradient of the layer after it.
class LinearGradients : public ::testing::TestWithParam<Activation> {};

TEST_P(LinearGradients, TwoLayersWithAnActivationBetweenThem) {
  const Activation activation = GetParam();
  const bool activates = activation != Activation::kNone;
  const std::int64_t rows = 3, inputs = 5, hidden = 4, outputs = 2;
  GradientCase tested;
  tested.inputs = {
      {"x", {rows, inputs}}, {"w1", {hidden, inputs}}, {"b1", {hidden}}, {"w2", {outputs, hidden}}, {"b2", {outputs}}};
  tested.outputs = {{"y", {rows, outputs}}};
  tested.saved = {{"u", {rows, hidden}}, {"hidden", {rows, hidden}}, {"du", {rows, hidden}}};
  tested.forward = [=](Backend& backend, const Views& views) {
    backend.linear_forward({.y = views["u"],
                            .x = views["x"],
                            .weight = views["w1"],
                            .bias = views["b1"],
                            .activation = activation,
                            .activated = activates ? views["hidden"] : TensorRef{}});
    backend.linear_forward(
        {.y = views["y"], .x = views[activates ? "hidden" : "u"], .weight = views["w2"], .bias = views["b2"]});
  };
  tested.backward = [=](Backend& backend, const Views& views) {
    if (activates) backend.fill(views["hidden"], NAN);  // the input gradient restores it
    backend.linear_input_gradient({.dx = views["du"],
                                   .dy = views["dy"],
                                   .weight = views["w2"],
                                   .activation = activation,
                                   .pre_activation = activates ? views["u"] : TensorRef{},
                                   .activated = activates ? views["hidden"] : TensorRef{}});
    backend.linear_weight_gradient(
        {.dweight = views["dw2"], .dy = views["dy"], .x = views[activates ? "hidden" : "u"], .dbias = views["db2"]});
    backend.linear_input_gradient({.dx = views["dx"], .dy = views["du"], .weight = views["w1"]});
    backend.linear_weight_gradient(
        {.dweight = views["dw1"], .dy = views["du"], .x = views["x"], .dbias = views["db1"]});
  };
  expect_gradients_match(tested, 1);
}

INSTANTIATE_TEST_SUITE_P(Every, LinearGradients,
                         ::testing::Values(Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf,
                                           Activation::kSilu));

// hidden = activation(gate) * u with gate = x wg^T and u = x wu^T, then y = hidden w2^T: the gated feed-forward.
TEST(Gradients, GatedFeedForward) {
  const std::int64_t rows = 3, inputs = 5, hidden = 4, outputs = 2;
  for (const Activation activation : {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu}) {
    for (const bool in_place : {false, true}) {
      GradientCase tested;
      tested.inputs = {
          {"x", {rows, inputs}}, {"wg", {hidden, inputs}}, {"wu", {hidden, inputs}}, {"w2", {outputs, hidden}}};
      tested.outputs = {{"y", {rows, outputs}}};
      for (const char* const name : {"gate", "u", "hidden", "du", "dgate"})
        tested.saved.push_back({name, {rows, hidden}});
      tested.forward = [=](Backend& backend, const Views& views) {
        backend.linear_forward({.y = views["gate"], .x = views["x"], .weight = views["wg"]});
        backend.linear_forward({.y = views["u"],
                                .x = views["x"],
                                .weight = views["wu"],
                                .activation = activation,
                                .activated = views["hidden"],
                                .gate = views["gate"]});
        backend.linear_forward({.y = views["y"], .x = views["hidden"], .weight = views["w2"]});
      };
      tested.backward = [=](Backend& backend, const Views& views) {
        const TensorRef activated = views[in_place ? "u" : "hidden"], dgate = views[in_place ? "gate" : "dgate"];
        if (!in_place) backend.fill(activated, NAN);  // the input gradient restores it
        backend.linear_input_gradient({.dx = views["du"],
                                       .dy = views["dy"],
                                       .weight = views["w2"],
                                       .activation = activation,
                                       .pre_activation = views["u"],
                                       .activated = activated,
                                       .gate = views["gate"],
                                       .dgate = dgate});
        backend.linear_weight_gradient({.dweight = views["dw2"], .dy = views["dy"], .x = activated});
        backend.linear_weight_gradient({.dweight = views["dwu"], .dy = views["du"], .x = views["x"]});
        backend.linear_weight_gradient({.dweight = views["dwg"], .dy = dgate, .x = views["x"]});
        const Tensor of_gate(backend, DType::kF64, {rows, inputs});
        backend.linear_input_gradient({.dx = views["dx"], .dy = views["du"], .weight = views["wu"]});
        backend.linear_input_gradient({.dx = of_gate.ref(), .dy = dgate, .weight = views["wg"]});
        backend.add(views["dx"], of_gate.ref());
      };
      expect_gradients_match(tested, 7);
    }
  }
}

NormForward norm_of(const Views& views, const TensorRef& x) {
  return {.y = views["y"],
          .mean = views["mean"],
          .rstd = views["rstd"],
          .x = x,
          .gamma = views["gamma"],
          .beta = views["beta"]};
}

TEST(Gradients, LayerNorm) {
  const std::int64_t rows = 3, hidden = 7;
  GradientCase tested;
  tested.inputs = {{"x", {rows, hidden}}, {"gamma", {hidden}}, {"beta", {hidden}}};
  tested.outputs = {{"y", {rows, hidden}}};
  tested.saved = {{"mean", {rows}}, {"rstd", {rows}}};
  tested.forward = [](Backend& backend, const Views& views) { backend.norm_forward(norm_of(views, views["x"])); };
  tested.backward = [](Backend& backend, const Views& views) {
    backend.norm_backward({.dx = views["dx"],
                           .dgamma = views["dgamma"],
                           .dbeta = views["dbeta"],
                           .dy = views["dy"],
                           .x = views["x"],
                           .mean = views["mean"],
                           .rstd = views["rstd"],
                           .gamma = views["gamma"]});
  };
  expect_gradients_match(tested, 2);
}

TEST(Gradients, RmsNorm) {
  const std::int64_t rows = 3, hidden = 7;
  GradientCase tested;
  tested.inputs = {{"x", {rows, hidden}}, {"gamma", {hidden}}};
  tested.outputs = {{"y", {rows, hidden}}};
  tested.saved = {{"rstd", {rows}}};
  tested.forward = [](Backend& backend, const Views& views) { backend.norm_forward(norm_of(views, views["x"])); };
  tested.backward = [](Backend& backend, const Views& views) {
    backend.norm_backward({.dx = views["dx"],
                           .dgamma = views["dgamma"],
                           .dy = views["dy"],
                           .x = views["x"],
                           .rstd = views["rstd"],
                           .gamma = views["gamma"]});
  };
  expect_gradients_match(tested, 8);
}

TEST(Gradients, PointwiseActivations) {
  for (const Activation activation :
       {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu, Activation::kTanh}) {
    GradientCase tested;
    tested.inputs = {{"x", {3, 5}}};
    tested.outputs = {{"y", {3, 5}}};
    tested.forward = [=](Backend& backend, const Views& views) {
      backend.activation_forward({.y = views["y"], .x = views["x"], .activation = activation});
    };
    tested.backward = [=](Backend& backend, const Views& views) {
      backend.activation_backward({.dx = views["dx"], .dy = views["dy"], .x = views["x"], .activation = activation});
    };
    expect_gradients_match(tested, 2);
  }
}

// sum and y are both outputs, as in a residual stream: dsum joins the layer norm's gradient by accumulate_dx.
TEST(Gradients, ResidualAddWithDropoutAndLayerNorm) {
  const Shape shape{2, 3, 5};
  const std::int64_t rows = 6, hidden = 5;
  const Dropout dropout = half_dropped(RandomPurpose::kResidualDropout, 3);
  GradientCase tested;
  tested.inputs = {{"residual", shape}, {"branch", shape}, {"gamma", {hidden}}, {"beta", {hidden}}};
  tested.outputs = {{"sum", shape}, {"y", shape}};
  tested.saved = {{"mean", {rows}}, {"rstd", {rows}}};
  tested.forward = [=](Backend& backend, const Views& views) {
    backend.residual_add_norm(
        {.add = {.sum = views["sum"], .residual = views["residual"], .branch = views["branch"], .dropout = dropout},
         .norm = norm_of(views, views["sum"])});
  };
  tested.backward = [=](Backend& backend, const Views& views) {
    backend.copy(views["dresidual"], views["dsum"]);
    backend.residual_add_norm_backward(
        {.norm = {.dx = views["dresidual"],
                  .dgamma = views["dgamma"],
                  .dbeta = views["dbeta"],
                  .dy = views["dy"],
                  .x = views["sum"],
                  .mean = views["mean"],
                  .rstd = views["rstd"],
                  .gamma = views["gamma"],
                  .accumulate_dx = true},
         .add = {.dbranch = views["dbranch"], .dsum = views["dresidual"], .dropout = dropout}});
  };
  expect_gradients_match(tested, 3);
}

struct AttentionVariant {
  std::int64_t context;
  bool causal, drops;
  std::int64_t heads = 2, key_heads = 2;
};

class AttentionGradients : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(AttentionGradients, QueriesKeysAndValues) {
  const auto [context, causal, drops, heads, key_heads] = GetParam();
  const std::int64_t batch = 2, queries = 4, keys = queries + context, head_size = 3;
  const Shape query_shape{batch, queries, heads, head_size}, key_shape{batch, keys, key_heads, head_size};
  Dropout dropout = half_dropped(RandomPurpose::kAttentionDropout, keys);
  dropout.first_position += context;
  if (!drops) dropout.probability = 0;
  const auto forward_of = [=, is_causal = causal](const Views& views) {
    return AttentionForward{.out = views["out"],
                            .log_sum_exp = views["log_sum_exp"],
                            .q = views["q"],
                            .k = views["k"],
                            .v = views["v"],
                            .causal = is_causal,
                            .scale = 0.7,
                            .dropout = dropout};
  };
  GradientCase tested;
  tested.inputs = {{"q", query_shape}, {"k", key_shape}, {"v", key_shape}};
  tested.outputs = {{"out", query_shape}};
  tested.saved = {{"log_sum_exp", {batch, heads, queries}}};
  tested.forward = [=](Backend& backend, const Views& views) { backend.attention_forward(forward_of(views)); };
  tested.backward = [=](Backend& backend, const Views& views) {
    backend.attention_backward(
        {.dq = views["dq"], .dk = views["dk"], .dv = views["dv"], .dout = views["dout"], .forward = forward_of(views)});
  };
  expect_gradients_match(tested, 4);
}

INSTANTIATE_TEST_SUITE_P(Every, AttentionGradients,
                         ::testing::Values(AttentionVariant{0, true, false}, AttentionVariant{0, false, false},
                                           AttentionVariant{3, true, false}, AttentionVariant{3, true, true},
                                           AttentionVariant{3, false, true}, AttentionVariant{3, true, true, 3, 1},
                                           AttentionVariant{0, true, false, 4, 2},
                                           AttentionVariant{2, false, true, 4, 2}));

// The gradient turns back what the forward pass turned.
TEST(Gradients, RotaryPositions) {
  const std::int64_t batch = 2, tokens = 3, heads = 2, head_size = 5, pairs = 2;
  const Shape shape{batch, tokens, heads, head_size};
  Values table;
  for (int i = 0; i < 7; ++i) {
    const double angles[] = {0.3 * i, 1.7 * i};
    table.insert(table.end(), {std::cos(angles[0]), std::cos(angles[1]), std::sin(angles[0]), std::sin(angles[1])});
  }
  for (const RotaryPairs kind : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
    GradientCase tested;
    tested.inputs = {{"x", shape}};
    tested.outputs = {{"y", shape}};
    const auto turn = [=](Backend& backend, const TensorRef& x, bool inverse) {
      const Tensor angles = make_tensor(backend, {7, 2, pairs}, table);
      backend.rotary({.x = x, .table = angles.ref(), .first_position = 4, .pairs = kind, .inverse = inverse});
    };
    tested.forward = [=](Backend& backend, const Views& views) {
      backend.copy(views["y"], views["x"]);
      turn(backend, views["y"], false);
    };
    tested.backward = [=](Backend& backend, const Views& views) {
      backend.copy(views["dx"], views["dy"]);
      turn(backend, views["dx"], true);
    };
    expect_gradients_match(tested, 9);
  }
}

// The vocabulary in two parts, as two ranks would hold it; ids that neither holds contribute their position alone.
TEST(Gradients, SplitEmbeddingWithDropout) {
  const std::int64_t batch = 2, tokens = 4, hidden = 3, part = 4;
  const Shape shape{batch, tokens, hidden};
  const Values ids = {0, 3, 3, 7, 4, 9, 0, 5};
  const Dropout dropout = half_dropped(RandomPurpose::kEmbeddingDropout, tokens);
  GradientCase tested;
  tested.inputs = {{"low", {part, hidden}},
                   {"high", {part, hidden}},
                   {"positions_low", {6, hidden}},
                   {"positions_high", {6, hidden}}};
  tested.outputs = {{"y_low", shape}, {"y_high", shape}};
  tested.forward = [=](Backend& backend, const Views& views) {
    const Tensor id_tensor = make_ids(backend, {batch, tokens}, ids);
    for (const std::string side : {"low", "high"}) {
      backend.embedding_forward({.y = views["y_" + side],
                                 .ids = id_tensor,
                                 .tokens = views[side],
                                 .positions = views["positions_" + side],
                                 .first_position = 1,
                                 .vocab_begin = side == "low" ? 0 : part,
                                 .dropout = dropout});
    }
  };
  tested.backward = [=](Backend& backend, const Views& views) {
    const Tensor id_tensor = make_ids(backend, {batch, tokens}, ids);
    for (const std::string side : {"low", "high"}) {
      backend.embedding_backward({.dtokens = views["d" + side],
                                  .dpositions = views["dpositions_" + side],
                                  .dy = views["dy_" + side],
                                  .ids = id_tensor,
                                  .first_position = 1,
                                  .vocab_begin = side == "low" ? 0 : part,
                                  .dropout = dropout});
    }
  };
  expect_gradients_match(tested, 5);
}

// max and sum of the whole row from those of its parts, on the host: what two ranks exchange.
void combine_partials(Backend& backend, const Views& views) {
  const Values max_low = download_values(backend, views["max_low"]),
               max_high = download_values(backend, views["max_high"]);
  const Values sum_low = download_values(backend, views["sum_low"]),
               sum_high = download_values(backend, views["sum_high"]);
  const Values target_low = download_values(backend, views["target_low"]);
  const Values target_high = download_values(backend, views["target_high"]);
  Values max, sum, target;
  for (std::size_t t = 0; t < max_low.size(); ++t) {
    max.push_back(std::max(max_low[t], max_high[t]));
    sum.push_back(sum_low[t] * std::exp(max_low[t] - max[t]) + sum_high[t] * std::exp(max_high[t] - max[t]));
    target.push_back(target_low[t] + target_high[t]);
  }
  upload_values(backend, views["max"], max);
  upload_values(backend, views["sum"], sum);
  upload_values(backend, views["target"], target);
}

// The high part ends in padding columns. The last row's target is -1: it has no target term.
TEST(Gradients, CrossEntropyOverASplitAndPaddedVocabulary) {
  const std::int64_t rows = 4, low_columns = 3, high_columns = 5, valid_high = 3;
  const Shape row_shape{rows};
  const Values targets = {1, 5, 3, -1};
  GradientCase tested;
  tested.inputs = {{"low", {rows, low_columns}}, {"high", {rows, high_columns}}};
  tested.outputs = {{"loss", row_shape}};
  for (const char* name :
       {"max", "sum", "target", "max_low", "sum_low", "target_low", "max_high", "sum_high", "target_high"}) {
    tested.saved.push_back({name, row_shape});
  }
  tested.forward = [=](Backend& backend, const Views& views) {
    const Tensor ids = make_ids(backend, row_shape, targets);
    for (const std::string side : {"low", "high"}) {
      backend.cross_entropy_partials({.max = views["max_" + side],
                                      .sum = views["sum_" + side],
                                      .target_logit = views["target_" + side],
                                      .logits = views[side],
                                      .targets = ids,
                                      .vocab_begin = side == "low" ? 0 : low_columns,
                                      .valid_columns = side == "low" ? low_columns : valid_high});
    }
    combine_partials(backend, views);
    backend.cross_entropy_loss(
        {.loss = views["loss"], .max = views["max"], .sum = views["sum"], .target_logit = views["target"]});
  };
  tested.backward = [=](Backend& backend, const Views& views) {
    const Tensor ids = make_ids(backend, row_shape, targets);
    for (const std::string side : {"low", "high"}) {
      backend.copy(views["d" + side], views[side]);
      backend.cross_entropy_backward({.logits = views["d" + side],
                                      .max = views["max"],
                                      .sum = views["sum"],
                                      .targets = ids,
                                      .weight = views["dloss"],
                                      .vocab_begin = side == "low" ? 0 : low_columns,
                                      .valid_columns = side == "low" ? low_columns : valid_high});
    }
  };
  expect_gradients_match(tested, 6);
}

}  // namespace
}  // namespace teratron::testing
