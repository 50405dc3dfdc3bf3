// Loss of a BERT on the masked words of held-out texts, and on the order of their pairs.
#pragma once

#include <cstdint>
#include <functional>

#include "data/samples/bert_samples.h"
#include "model/encoder.h"

namespace teratron {

struct MaskedLoss {
  std::int64_t targets = 0, pairs = 0;  // masked tokens; pairs of texts
  double loss = 0;                      // nats per target, their mean
  double order_loss = 0;                // nats per pair, their mean
  double order_accuracy = 0;            // share of the pairs
};

// Scores an epoch of samples, each once, as training's validation does. The encoder has the heads of pre-training, and
// takes samples of this length. Every rank of the mesh calls it; data-parallel ranks share the samples, and all get the
// same result. UserError: a loss is not finite. done(share): progress of this copy.
MaskedLoss masked_loss(Encoder& encoder, const BertSamples& samples, const std::function<void(double share)>& done);

}  // namespace teratron
