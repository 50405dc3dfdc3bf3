#include "cli/training_setup.h"

#include <fmt/format.h>

#include "base/error.h"
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

}  // namespace teratron
