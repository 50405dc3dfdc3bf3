// What a fine-tuned BERT says of texts: its head's logits, on every stage.
#pragma once

#include "executor/executor.h"
#include "model/bert.h"

namespace teratron {

// Of ids, token types and lengths, without dropout; labels are not used. `model` is the executor's, made for evaluation
// or for training, whose weights and gradients stay as they are. outputs: [batch, num_labels], [batch / kChoices,
// kChoices] or [batch, 2, tokens], as BertTaskHead has them; those of padding mean nothing. UserError: parts of groups
// of choices.
void task_outputs(Executor& executor, const Bert& model, const MicroBatch& micro_batch, std::span<float> outputs);

}  // namespace teratron
