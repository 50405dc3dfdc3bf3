// Heads of BERT's pre-training, and its pooler. Every tensor-parallel rank holds all of the small matrices and computes
// the same; the vocabulary is split.
#pragma once

#include <optional>

#include "executor/model.h"
#include "model/config.h"
#include "nn/language_model_head.h"
#include "nn/linear.h"

namespace teratron {

// Linear layer of each sequence's first token, [CLS], and its activation: tanh, or ReLU.
struct BertPooler {
  Linear dense;  // [hidden, hidden]; "pooler", or "task_dense"
  Activation activation;
  double input_dropout;  // in training

  BertPooler(const ModelConfig& config, GroupRank group);

  struct Saved {
    TensorRef first, sum, pooled;  // [batch, hidden]: input, before tanh, after
    TensorRef dpooled, dfirst;     // training only
  };
  static Saved carve(const EndSizes& sizes, std::int64_t hidden, Carver& memory);

  // saved.pooled from encoded [batch, tokens, hidden].
  void forward(const LayerPass& pass, TensorRef encoded, const Saved& saved) const;
  // saved.dfirst from saved.dpooled, which it changes.
  void backward(const LayerPass& pass, const Saved& saved) const;
};

// Heads of pre-training. Masked tokens are predicted by dense, GELU, norm and the token table with its own bias; the
// order of a pair's texts by a linear layer on the pooler's output (sentence order prediction, ALBERT, arXiv
// 1909.11942), unless the kind of model has none. Tokens without a weight are no rows of any product.
struct BertPretrainingHeads {
  static constexpr std::int64_t kOrders = 2;

  Linear transform;  // [hidden, hidden]
  Norm norm;
  Parameter bias;                             // [padded vocabulary], split as the token table is
  std::optional<ColumnParallelLinear> order;  // [kOrders, hidden], its rows split, rounded up to a row a rank
  LanguageModelHead output, order_output;
  Activation activation;  // after the transform

  BertPretrainingHeads(const Parameter& tokens, const ModelConfig& config, GroupRank group);

  struct Workspace {
    TensorRef loss, order_loss;                  // A [rows], [batch]
    TensorRef gathered, sum, activated, normed;  // [chunk, hidden], as they follow one another
    TensorRef dnormed;                           // [chunk, hidden], training only
    Norm::Saved norm;
    LanguageModelHead::Workspace output, order;
  };
  Workspace carve(const EndSizes& sizes, std::int64_t token_columns, Carver& memory) const;

  void visit(const ParameterVisitor& visitor);

  // Losses of the rows of encoded [rows, hidden] that inputs.target_rows names, in workspace.loss. With drows [rows,
  // hidden], also the gradients of sum of weight * loss: those of these rows one after the other in the first rows of
  // drows, those of the parameters added up as pass.accumulate says.
  void predict_tokens(const LayerPass& pass, const Parameter& tokens, TensorRef encoded, TensorRef drows,
                      const SliceInputs& inputs, const Workspace& workspace) const;
  // Logits of the rows of encoded that target_rows (i32 [rows], at most a chunk) names, for this rank's part of the
  // vocabulary: [rows, columns], in the workspace.
  TensorRef token_logits(const LayerPass& pass, const Parameter& tokens, TensorRef encoded, TensorRef target_rows,
                         const Workspace& workspace) const;
  // Predicts the order of the texts of each pair, from pooled [batch, hidden]; dpooled may be null.
  void predict_order(const LayerPass& pass, TensorRef pooled, TensorRef dpooled, const SliceInputs& inputs,
                     const Workspace& workspace) const;

 private:
  // The output projection's input, of these rows of encoded: workspace.normed, from those before it.
  TensorRef transformed(const LayerPass& pass, TensorRef encoded, TensorRef target_rows,
                        const Workspace& workspace) const;
};

}  // namespace teratron
