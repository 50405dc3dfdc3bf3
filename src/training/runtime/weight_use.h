// Table of all commands that take weights, but convert, which takes any: the kind of model, the head and the kind of
// run that each needs.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/initial_weights.h"

namespace teratron {

enum class WeightUse {
  kTrainFinetune,  // train --finetune
  kTrainLoad,
  kFinetune,       // finetune --load
  kFinetuneAgain,  // finetune whose --save holds a run
  kEvalLoss,
  kEvalWikitext103,
  kEvalLambada,
  kEvalMultipleChoice,
  kEvalTask,  // eval mnli, ..
  kGenerate,
  kEmbed,
  kFillMask,
};

// UserError: the command cannot use the weights; says why, and which command can. `task`: name of the task of finetune
// and eval. `needed`: the model that it needs. Missing heads that a command initialises (warning_of_drawn) are no
// error.
void require_usable(WeightUse use, const WeightSource& source, std::string_view task = "",
                    const ModelConfig& needed = {});

// Note that the head's labels have no names and are taken in the order of `needed`; empty: they have names, or finetune
// wrote them in that order.
std::string note_of_unnamed_labels(const WeightSource& source, const ModelConfig& needed);

}  // namespace teratron
