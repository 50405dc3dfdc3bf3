// Which weights a command can use, and for what: one table of all commands, by the kind of model, by what it ends in
// and by the command that wrote it.
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
  kEvalTask,  // eval mnli, ..
  kGenerate,
  kEmbed,
  kConvert,
};

// UserError where the command cannot use them: why, and which command can. `task`, of finetune and eval: its name, and
// `needed` the model that it asks for. Heads that a command draws where they are lacking (warning_of_drawn) are no
// error.
void require_usable(WeightUse use, const WeightSource& source, std::string_view task = "",
                    const ModelConfig& needed = {});

// A sentence where the head's labels have no names and are therefore taken in the order of `needed`; otherwise empty.
// Those of a run of finetune are in that order.
std::string note_of_unnamed_labels(const WeightSource& source, const ModelConfig& needed);

}  // namespace teratron
