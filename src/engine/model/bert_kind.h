// Differences between the kinds of models that read texts: BERT, RoBERTa (Liu et al., arXiv 1907.11692) and DistilBERT
// (Sanh et al., arXiv 1910.01108), a row each.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace teratron {

struct BertKind {
  ModelKind kind;
  // Rows of the table of token types. 0: there is none. 1: every token's row is the first, whatever the input says.
  std::int64_t token_types;
  bool orders_sentences;    // pre-training predicts the order of two texts, too, from the pooler
  bool encoder_has_pooler;  // models without a head end in a pooler
  // Heads of a class, and of a choice, have a layer of their own in the pooler's place ("task_dense").
  bool classes_have_layer, choices_have_layer;
  bool classes_drop_input;  // dropout before that layer, too
  Activation pooler;        // after the pooler, or that layer
  Activation words;         // of the head of masked words; kNone: that of the layers
  const char* class_layer;  // name of the linear layer that classes end in; LabelRows knows its beginning
};

// InternalError: a model that continues text.
const BertKind& bert_kind(ModelKind kind);

}  // namespace teratron
