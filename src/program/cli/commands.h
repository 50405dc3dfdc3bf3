// All subcommands of the program.
#pragma once

#include <vector>

#include "cli/command.h"

namespace teratron {

// Table of all commands, in the order of --help. ONE(data_info): a file of cli/ defines `Command data_info_command()`.
// EACH(score): a file defines `std::vector<Command> score_commands()`, a command for each task or stage.
#define TERATRON_COMMANDS(ONE, EACH) \
  ONE(train)                         \
  ONE(finetune)                      \
  ONE(top)                           \
  ONE(report)                        \
  ONE(eval_loss)                     \
  ONE(eval_wikitext103)              \
  ONE(eval_lambada)                  \
  ONE(eval_multiple_choice)          \
  EACH(eval_task)                    \
  EACH(score)                        \
  ONE(generate)                      \
  ONE(embed)                         \
  ONE(fill_mask)                     \
  ONE(serve)                         \
  ONE(tokenizer_train)               \
  ONE(tokenizer_encode)              \
  ONE(tokenizer_decode)              \
  ONE(tokenizer_info)                \
  EACH(data_stage)                   \
  ONE(data_overlap)                  \
  ONE(data_tokenize)                 \
  ONE(data_chat)                     \
  ONE(data_preferences)              \
  ONE(data_merge)                    \
  ONE(data_split)                    \
  ONE(data_sample)                   \
  ONE(data_info)                     \
  ONE(data_verify)                   \
  ONE(checkpoint_info)               \
  ONE(checkpoint_verify)             \
  ONE(checkpoint_reshard)            \
  ONE(convert)                       \
  ONE(diff)                          \
  ONE(profile)                       \
  ONE(simulate)                      \
  ONE(plan)                          \
  ONE(flags)                         \
  ONE(completion)                    \
  ONE(man)

#define TERATRON_DECLARE_ONE(name) Command name##_command();
#define TERATRON_DECLARE_EACH(name) std::vector<Command> name##_commands();
TERATRON_COMMANDS(TERATRON_DECLARE_ONE, TERATRON_DECLARE_EACH)
#undef TERATRON_DECLARE_ONE
#undef TERATRON_DECLARE_EACH

std::vector<Command> all_commands();

}  // namespace teratron
