#include "runtime/loaded_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "runtime/memory_table.h"
#include "telemetry/checkpoint_progress.h"

namespace teratron {
namespace {

// What takes less memory without another model.
std::string loading_advice(const ExecutorOptions& options, const BackendSettings& settings, const MemoryRoom& room) {
  std::vector<std::string> ways;
  if (options.batch > 1) ways.emplace_back("a smaller --micro-batch-size");
  if (options.caches > 1) ways.emplace_back("a smaller --batch-size");
  if (!settings.bf16 && !settings.fp16) ways.emplace_back("--bf16");
  if (!room.is_host) ways.emplace_back("more devices with --tp or --pp");
  return ways.empty() ? "take a smaller model" : fmt::format("use {}", fmt::join(ways, " or "));
}

}  // namespace

CheckpointInfo find_model(const std::filesystem::path& path, const LayoutSettings& layout) {
  CheckpointInfo checkpoint = read_checkpoint_info(path);
  Faults faults = checkpoint.model.faults(layout.tensor_parallel);
  const std::int64_t layers = checkpoint.model.num_layers;
  faults.add_if(layout.pipeline_parallel > layers,
                "{} is {}, but it has {} layers and every stage needs one; the most that works is {}",
                Flag{"pipeline-model-parallel-size"}, layout.pipeline_parallel, layers, layers);
  if (!faults.empty()) {
    throw_user_error("the model in '{}': {}", checkpoint.folder.string(), fmt::join(faults.texts(), "; "));
  }
  return checkpoint;
}

void add_loaded_precision_fields(FieldList& list, BackendSettings& settings) {
  add_precision_fields(list, settings, "weights and activations in bf16; statistics and losses in fp32",
                       "the same in fp16, whose values end at 65504");
}

LoadedModel load_model(const CheckpointInfo& checkpoint, const ExecutorOptions& options,
                       const BackendSettings& settings, const Rank& rank) {
  ExecutorOptions filled = options;
  if (filled.tokens == 0) filled.tokens = checkpoint.model.max_position_embeddings;
  filled.tokens = std::min(filled.tokens, checkpoint.model.max_position_embeddings);
  filled.cell_layers = pipeline::even_slices(checkpoint.model.num_layers, rank.mesh->pipeline->size());
  LoadedModel model{.backend = make_backend(settings, rank)};
  model.model = std::make_unique<LanguageModel>(*model.backend, checkpoint.model, filled, rank.mesh);
  const std::vector<RankMemory> memory =
      memory_of_ranks(model.model->memory(), *model.backend, rank.mesh->pipeline->rank(), rank.world);
  require_memory(memory, *model.backend, rank.world, rank.ranks_in_this_process(),
                 [&](const MemoryRoom& room) { return loading_advice(filled, settings, room); });
  rank.world.barrier();  // no rank takes memory before it is known that there is enough
  model.model->allocate();
  std::optional<LongTask> told;
  if (rank.is_first()) {
    std::uint64_t bytes = 0;
    for (const CheckpointFileInfo& file : checkpoint.files) bytes += file.bytes;
    told.emplace(fmt::format("loading '{}'", checkpoint.folder.string()), share_of_checksums(bytes));
  }
  // Every rank reads its own parts; one is enough to compare the checksums.
  load_checkpoint(checkpoint.folder, checkpoint.model, model.model->all_parameters(), *model.backend,
                  {.optimizer = false, .verify = rank.is_first()});
  return model;
}

bool holds_tokenizer(const std::filesystem::path& folder) {
  return std::ranges::any_of(std::array{"tokenizer.json", "vocab.json", "encoder.json", "vocab.txt"},
                             [&](const char* name) { return std::filesystem::exists(folder / name); });
}

Tokenizer load_tokenizer_for(const CheckpointInfo& checkpoint, const std::filesystem::path& folder) {
  const std::filesystem::path& from = folder.empty() ? checkpoint.folder : folder;
  if (folder.empty() && !holds_tokenizer(from)) {
    throw_user_error("the checkpoint '{}' was saved without a tokenizer; name one with --tokenizer DIR", from.string());
  }
  Tokenizer tokenizer = Tokenizer::load(from);
  if (tokenizer.vocab_size() > checkpoint.model.vocab_size) {
    throw_user_error("the tokenizer in '{}' has {} tokens and the model {}; use the one it was trained with",
                     from.string(), tokenizer.vocab_size(), checkpoint.model.vocab_size);
  }
  return tokenizer;
}

}  // namespace teratron
