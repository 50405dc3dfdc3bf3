// Loss of a model on the words of chats that are to be learned.
#pragma once

#include <cstdint>

#include "data/samples/chat_samples.h"
#include "eval/windows.h"
#include "model/language_model.h"

namespace teratron {

struct ChatLoss {
  std::int64_t targets = 0;
  double loss = 0;  // nats per token, mean over the targets
};

// Scores an epoch of samples as training weighs them. The model's executor was made with first keys and position ids,
// and for samples of this length. Every rank of the mesh calls it; data-parallel ranks share the samples, and all get
// the same loss. UserError: a loss is not finite.
ChatLoss chat_loss(LanguageModel& model, const ChatSamples& samples, const ScoringObserver& observer);

}  // namespace teratron
