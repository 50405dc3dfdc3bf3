// Head of a BERT whose vectors of texts are learned: a text's vector is that of its tokens (model/pooling.h), and the
// losses are of cosines. It has no parameters. Every tensor-parallel rank computes the same. The texts of an example
// lie next to one another in a micro-batch, TextVectors::texts of each.
//
//   ranking     loss of example i: the cross-entropy of picking its second text among the second (and third) texts of
//               all examples of the micro-batch, with the cosines to its first text times kScale as logits
//               (MultipleNegativesRankingLoss of sentence-transformers; Henderson et al., arXiv 1705.00652,
//               section 4.4)
//   similarity  squared difference of the cosine of an example's two texts from its label, fp32 bits
//               (CosineSimilarityLoss of sentence-transformers; Reimers and Gurevych, arXiv 1908.10084, section 3)
//
// The examples of a micro-batch are thus one another's negatives, whatever the layout: ranks never mix theirs.
#pragma once

#include "executor/model.h"
#include "model/bert_task_head.h"
#include "model/config.h"

namespace teratron {

struct TextVectorHead {
  static constexpr double kScale = 20;  // sentence-transformers' scale of cosines

  TextVectors settings;
  std::int64_t hidden;

  // Adds the head's inputs and losses to the traits of a BERT.
  static void add_to(ModelTraits& traits, const TextVectors& settings);

  // Texts come kind by kind: first all first texts, then all second ones. N examples, M candidates.
  struct Workspace {
    TensorRef sums;                          // A [texts, hidden]
    TensorRef pooled, unit, dunit, dpooled;  // C [texts, hidden]; the last two in training alone
    TensorRef ones, rstd;                    // C [hidden], A [texts]
    TensorRef products, logits;              // C [N, M]
    TensorRef loss, max, sum, target_logit;  // A [N]
    TensorRef cosines;                       // C [N, 1], of similarities
    SquaredErrors errors;                    // of similarities
  };
  Workspace carve(const EndSizes& sizes, Carver& memory) const;

  // Losses of the examples of rows [batch * tokens, hidden] of the encoder's output, in workspace.loss.
  void find_losses(const LayerPass& pass, TensorRef rows, const SliceInputs& inputs, const Workspace& workspace) const;
  // Then the gradients of sum of weight * loss: drows, of `rows` from row `first` on.
  void backward(const LayerPass& pass, TensorRef drows, std::int64_t first, const SliceInputs& inputs,
                const Workspace& workspace) const;

 private:
  // Factor between products of vectors as long as the root of `hidden` and logits, or cosines.
  double scale() const { return (settings.are_similarities ? 1 : kScale) / static_cast<double>(hidden); }
  TensorRef first_texts(TensorRef of_texts, const Workspace& w) const { return of_texts.slice(0, 0, w.loss.dim(0)); }
  TensorRef candidates(TensorRef of_texts, const Workspace& w) const {
    return of_texts.slice(0, w.loss.dim(0), of_texts.dim(0));
  }
  // Those of the logits, in their place.
  void find_logit_gradients(Backend& backend, const SliceInputs& inputs, const Workspace& workspace) const;
};

}  // namespace teratron
