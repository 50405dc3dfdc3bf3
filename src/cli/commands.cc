#include "cli/commands.h"

#include <fmt/format.h>

namespace teratron {

std::vector<Command> all_commands() {
  return {
      train_command(),
      eval_loss_command(),
      eval_wikitext103_command(),
      generate_command(),
      tokenizer_train_command(),
      tokenizer_encode_command(),
      tokenizer_decode_command(),
      tokenizer_info_command(),
      data_tokenize_command(),
      data_info_command(),
      checkpoint_info_command(),
      checkpoint_verify_command(),
      checkpoint_reshard_command(),
      convert_command(),
      profile_command(),
      simulate_command(),
      bench_scaling_command(),
      bench_comm_command(),
  };
}

void need_between(std::vector<std::string>& faults, std::string_view flag, std::int64_t value, std::int64_t least,
                  std::int64_t most) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("--{} is {}; it must be from {} to {}", flag, value, least, most));
}

}  // namespace teratron
