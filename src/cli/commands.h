// All subcommands of the binary.
#pragma once

#include <vector>

#include "cli/command.h"

namespace teratron {

Command train_command();
Command finetune_command();
Command eval_loss_command();
Command eval_wikitext103_command();
Command eval_lambada_command();
Command eval_mnli_command();
Command eval_qqp_command();
Command eval_squad1_command();
Command eval_squad2_command();
Command eval_race_command();
Command generate_command();
Command score_squad1_command();
Command score_squad2_command();
Command embed_command();
Command score_mnli_command();
Command score_qqp_command();
Command score_race_command();
Command tokenizer_train_command();
Command tokenizer_encode_command();
Command tokenizer_decode_command();
Command tokenizer_info_command();
Command data_extract_command();
Command data_clean_command();
Command data_dedup_command();
Command data_langid_command();
Command data_decontaminate_command();
Command data_overlap_command();
Command data_tokenize_command();
Command data_merge_command();
Command data_split_command();
Command data_sample_command();
Command data_info_command();
Command data_verify_command();
Command checkpoint_info_command();
Command checkpoint_verify_command();
Command checkpoint_reshard_command();
Command convert_command();
Command profile_command();
Command simulate_command();
Command plan_command();
Command flags_command();
Command completion_command();
Command man_command();

std::vector<Command> all_commands();  // in the order of --help

}  // namespace teratron
