// Head of a fine-tuned BERT: a linear layer, and a softmax or a squared error. Every tensor-parallel rank holds all of
// the layer and computes the same, so the loss needs no exchange. A label is a 32-bit word: an index, or of a number
// its bits as fp32.
//
//   kClassification  num_labels logits of the pooled text, after dropout; a label for each text. With one label it is a
//                    number, whose loss is the squared error, as of transformers' problem_type "regression"
//   kChoice          one logit of each pooled text, after dropout; of each kChoices texts one is the answer (one label)
//   kSpans           two logits of each token: whether an answer begins, or ends, there; two labels for each text, the
//                    places of its answer's first and last token. The softmaxes are over the text's own tokens. Hugging
//                    Face's are over its padding, too; here a loss does not depend on how much padding there is.
//   kTokens          num_labels logits of each token, after dropout; a label for each token that has a weight, which
//                    come as targets do
#pragma once

#include "executor/model.h"
#include "model/config.h"
#include "nn/linear.h"

namespace teratron {

// Places of the dropouts of a head. Masks go by the place and the number of the text, of tokens also by their position.
enum HeadDropout : std::uint32_t { kPooledTexts, kPoolerInput, kReadTokens };
// Drops of a vector of each text, [batch, hidden], in place.
void drop_texts(const LayerPass& pass, TensorRef texts, double rate, HeadDropout place);

// Squared errors of numbers, one for each label.
struct SquaredErrors {
  TensorRef target, scale;   // A [labels]; memory alone
  TensorRef error, factors;  // C [labels, 1], [3]; memory alone

  void carve(std::int64_t labels, const CallSizes& sizes, Carver& memory);
  // loss A [labels] from values C [labels, 1], which become the gradients of the sum of weight * loss.
  void find(Backend& backend, TensorRef loss, TensorRef values, const SliceInputs& inputs) const;
};

struct BertTaskHead {
  ModelHead kind;
  std::int64_t logits;    // of a text, or of a token
  double hidden_dropout;  // of pooled texts, or of the tokens of kTokens
  // [logits, hidden]; "spans" of kSpans, of kClassification BertKind::class_layer, otherwise "classifier".
  Linear linear;

  BertTaskHead(const ModelConfig& config, GroupRank group);

  // Adds the head's inputs and losses to the traits of a BERT.
  static void add_to(ModelTraits& traits, ModelHead kind);

  struct Workspace {
    TensorRef of_rows;                       // [texts or tokens, logits], as the linear layer gives them
    TensorRef by_label;                      // one row for each label; the same memory but for kSpans
    TensorRef loss, max, sum, target_logit;  // A [labels]
    SquaredErrors errors;                    // of numbers
  };
  Workspace carve(const EndSizes& sizes, Carver& memory) const;

  void visit(const ParameterVisitor& visitor) { linear.visit(visitor); }

  bool reads_tokens() const { return kind == ModelHead::kSpans || kind == ModelHead::kTokens; }
  bool is_number() const { return kind == ModelHead::kClassification && logits == 1; }

  // Dropout of the tokens of kTokens; inactive for other heads, and outside of training. `pass`: that of the rows.
  Dropout token_dropout(const LayerPass& pass) const;
  // Weights of the labels.
  TensorRef weights(const SliceInputs& inputs) const {
    return kind == ModelHead::kTokens ? inputs.weights : inputs.label_weights;
  }

  // [batch, num_labels], [batch / kChoices, kChoices], [batch, 2, tokens] or [batch * tokens, num_labels] in the
  // workspace, from pooled [batch, hidden] or encoded [batch * tokens, hidden], of which kTokens gets what
  // token_dropout() leaves. Dropout of `pooled`, in training, changes it in place.
  TensorRef forward(const LayerPass& pass, TensorRef read, const Workspace& workspace) const;
  // Then the loss of each label, in workspace.loss.
  void find_losses(const LayerPass& pass, const SliceInputs& inputs, const Workspace& workspace) const;
  // Then the gradients of sum of weight * loss: those of the layer, added up as pass.accumulate says, and dread, of the
  // rows of `read` from row `first` on, after the dropout of tokens.
  void backward(const LayerPass& pass, TensorRef dread, std::int64_t first, TensorRef read, const SliceInputs& inputs,
                const Workspace& workspace) const;

 private:
  TensorRef labels(const SliceInputs& inputs) const {
    return kind == ModelHead::kTokens ? inputs.targets : inputs.labels;
  }
};

}  // namespace teratron
