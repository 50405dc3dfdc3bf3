#include "cli/loaded_model.h"

#include "base/error.h"
#include "cli/memory_table.h"

namespace teratron {

LoadedModel load_model(const std::filesystem::path& path, const RunnerOptions& options, bool guard_memory) {
  const CheckpointInfo info = read_checkpoint_info(path);
  RunnerOptions filled = options;
  if (filled.tokens == 0) filled.tokens = info.model.max_position_embeddings;
  filled.tokens = std::min(filled.tokens, info.model.max_position_embeddings);
  LoadedModel model{.backend = make_cpu_backend({.guard_memory = guard_memory}), .folder = info.folder};
  model.runner = std::make_unique<Gpt2Runner>(*model.backend, info.model, filled);
  require_memory(model.runner->memory());
  model.runner->allocate();
  load_checkpoint(info.folder, info.model, model.runner->parameters(), *model.backend, {.optimizer = false});
  return model;
}

Tokenizer load_tokenizer_for(const LoadedModel& model, const std::filesystem::path& folder) {
  const std::filesystem::path& from = folder.empty() ? model.folder : folder;
  if (folder.empty() && !std::filesystem::exists(from / "vocab.json") &&
      !std::filesystem::exists(from / "tokenizer.json")) {
    throw_user_error("the checkpoint '{}' was saved without a tokenizer; name one with --tokenizer DIR", from.string());
  }
  Tokenizer tokenizer = Tokenizer::load(from);
  if (tokenizer.vocab_size() > model.runner->config().vocab_size) {
    throw_user_error("the tokenizer in '{}' has {} tokens and the model {}; use the one it was trained with",
                     from.string(), tokenizer.vocab_size(), model.runner->config().vocab_size);
  }
  return tokenizer;
}

}  // namespace teratron
