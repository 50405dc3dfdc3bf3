#include "cli/commands.h"

#include <fmt/format.h>

namespace teratron {

std::vector<Command> all_commands() {
  return {
      train_command(),
      finetune_command(),
      eval_loss_command(),
      eval_wikitext103_command(),
      eval_lambada_command(),
      eval_mnli_command(),
      eval_qqp_command(),
      eval_squad1_command(),
      eval_squad2_command(),
      eval_race_command(),
      generate_command(),
      score_squad1_command(),
      score_squad2_command(),
      embed_command(),
      score_mnli_command(),
      score_qqp_command(),
      score_race_command(),
      tokenizer_train_command(),
      tokenizer_encode_command(),
      tokenizer_decode_command(),
      tokenizer_info_command(),
      data_extract_command(),
      data_clean_command(),
      data_dedup_command(),
      data_langid_command(),
      data_decontaminate_command(),
      data_overlap_command(),
      data_tokenize_command(),
      data_merge_command(),
      data_split_command(),
      data_sample_command(),
      data_info_command(),
      data_verify_command(),
      checkpoint_info_command(),
      checkpoint_verify_command(),
      checkpoint_reshard_command(),
      convert_command(),
      profile_command(),
      simulate_command(),
      plan_command(),
      flags_command(),
      completion_command(),
      man_command(),
  };
}

}  // namespace teratron
