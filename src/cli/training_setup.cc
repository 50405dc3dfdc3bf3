#include "cli/training_setup.h"

#include <fmt/format.h>

#include "base/error.h"
#include "telemetry/live_line.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

std::int64_t vocabulary_size(const TrainConfig& config) {
  if (!config.tokenizer.empty()) {
    const std::int64_t size = Tokenizer::load(config.tokenizer).vocab_size();
    if (config.model.vocab_size != 0 && config.model.vocab_size < size) {
      throw_user_error("--vocab-size {} is smaller than the tokenizer's vocabulary of {} in '{}'; leave it out",
                       config.model.vocab_size, size, config.tokenizer.string());
    }
    return size;
  }
  if (config.model.vocab_size == 0) {
    throw_user_error(
        "the vocabulary's size is unknown: give --tokenizer DIR (the one the data was made with) or "
        "--vocab-size N");
  }
  return config.model.vocab_size;
}

std::unique_ptr<Backend> make_backend(const TrainConfig& config, const Rank& rank) {
  return make_backend(
      {.kind = config.backend, .guard_memory = config.guard_memory, .cudnn_attention = config.cudnn_attention},
      config.compute_dtype(), rank);
}

ProfileProgress show_profile_progress() {
  const auto line = std::make_shared<LiveLine>(stderr, terminal_columns(stderr));
  return [line](int done, int steps) {
    const std::string text = fmt::format("measuring what slices cost: {} of {} steps", done, steps);
    line->show(text);
    const int few = std::max(1, steps / 5);
    if (!line->possible() && (done % few == 0 || done == steps)) fmt::print(stderr, "{}\n", text);
  };
}

}  // namespace teratron
