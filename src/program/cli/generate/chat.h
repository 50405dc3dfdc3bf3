// Talking with a model in the terminal.
#pragma once

#include "cli/generate/generate_output.h"
#include "data/chats/chat_rules.h"
#include "runtime/loaded_model.h"

namespace teratron {

// Answers each line of standard input on standard output, with the conversation so far, until the input ends. All ranks
// call it; the first one reads and writes. Messages that no longer fit the model's positions are forgotten, oldest
// first; the system's stays. UserError: the template refuses the conversation.
void talk(LanguageModel& model, const Tokenizer& tokenizer, const ChatRules& rules, const GenerationSettings& settings,
          const std::string& system, const Rank& rank);

}  // namespace teratron
