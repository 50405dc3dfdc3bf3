#include "runtime/loaded_model.h"

#include <fmt/ranges.h>

#include <optional>

#include "base/counted.h"
#include "base/error.h"
#include "checkpoint/tokenizer_files.h"
#include "pipeline/token_slices.h"
#include "runtime/memory_table.h"
#include "telemetry/checkpoint_progress.h"

namespace teratron {
namespace {

// Advice for lack of memory: settings of the same model that need less.
std::string loading_advice(const ExecutorOptions& options, const BackendSettings& settings, std::string_view batch_flag,
                           const MemoryRoom& room) {
  std::vector<std::string> remedies;
  const bool is_one = options.batch <= 1 && options.caches <= 1;
  if (!is_one && !batch_flag.empty()) remedies.push_back(fmt::format("a smaller {}", batch_flag));
  if (!settings.weight_tiles && room.is_host) remedies.emplace_back("--weights q8_0");
  if (!settings.bf16 && !settings.fp16) remedies.emplace_back("--bf16");
  if (!room.is_host) remedies.emplace_back("more devices with --tp or --pp");
  return remedies.empty() ? "take a smaller model" : fmt::format("use {}", fmt::join(remedies, " or "));
}

void check_layout(const std::filesystem::path& folder, const ModelConfig& model, const LayoutSettings& layout) {
  Faults faults = model.faults(layout.tensor_parallel);
  const std::int64_t layers = model.num_layers;
  faults.add_if(layout.pipeline_parallel > layers,
                "{} is {}, but it has {} and every stage needs one; the most that works is {}",
                Flag{"pipeline-model-parallel-size"}, layout.pipeline_parallel, counted(layers, "layer"), layers);
  if (!faults.empty()) {
    throw_user_error("the model in '{}': {}", folder.string(), fmt::join(faults.texts(), "; "));
  }
}

// Loads a model. Every rank reads its own parts; the first one compares checksums and looks for values that are not
// finite.
template <class Model>
Loaded<Model> load(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                   const Rank& rank, std::string_view batch_flag) {
  const ModelConfig& config = source.model;
  ExecutorOptions filled = options;
  if (filled.tokens == 0) filled.tokens = config.max_position_embeddings;
  filled.tokens = std::min(filled.tokens, config.max_position_embeddings);
  filled.weight_tiles = settings.weight_tiles;
  filled.cell_layers = pipeline::even_slices(config.num_layers, rank.mesh->pipeline->size());
  Loaded<Model> loaded{.backend = make_backend(settings, rank), .model = nullptr};
  loaded.model = std::make_unique<Model>(*loaded.backend, config, filled, rank.mesh);
  const std::vector<RankMemory> memory = memory_of_ranks(loaded.model->plan(), *loaded.backend, rank.world);
  require_memory(memory, *loaded.backend, rank.world, rank.ranks_in_this_process(),
                 [&](const MemoryRoom& room) { return loading_advice(filled, settings, batch_flag, room); });
  rank.world.barrier();  // ranks allocate only after the check of all
  loaded.model->allocate();
  std::optional<LongTask> progress;
  if (rank.is_first()) {
    progress.emplace(fmt::format("loading '{}'", source.folder.string()),
                     source.checked_bytes > 0 ? share_of_checksums(source.checked_bytes) : LongTask::Share());
  }
  load_weights(source.folder, config, loaded.model->all_parameters(), *loaded.backend, rank.is_first());
  return loaded;
}

}  // namespace

WeightSource find_model(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use) {
  WeightSource source = find_weights(path);
  require_usable(use, source);
  check_layout(source.folder, source.model, layout);
  return source;
}

WeightSource find_encoder(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use,
                          std::string_view task, const ModelConfig& needed) {
  WeightSource source = find_weights(path);
  require_usable(use, source, task, needed);
  check_layout(source.folder, source.model, layout);
  return source;
}

void add_loaded_backend_fields(FieldList& list, BackendSettings& settings) {
  add_precision_fields(list, settings, "weights and activations in bf16; statistics and losses in fp32",
                       "weights and activations in fp16, whose values end at 65504; statistics and losses in fp32");
  list.add_choice("weights", settings.weight_tiles,
                  {{"whole", std::nullopt}, {"q8_0", DType::kQ8Tile}, {"q4_0", DType::kQ4Tile}},
                  "CPUs: matrices and the token table, as they are loaded, in blocks of 32 values with one step, of 8 "
                  "bits or of 4, as GGUF's; whole: in the precision of the others");
  add_backend_fields(list, settings);
}

LoadedModel load_model(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                       const Rank& rank, std::string_view batch_flag) {
  return load<LanguageModel>(source, options, settings, rank, batch_flag);
}

LoadedEncoder load_encoder(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                           const Rank& rank, std::string_view batch_flag) {
  return load<Encoder>(source, options, settings, rank, batch_flag);
}

std::optional<WeightPacking> keep_packed(const BackendSettings& settings, std::int64_t most_rows) {
  if (settings.kind != BackendKind::kCpu) return std::nullopt;
  return WeightPacking{
      .processor = {.compute_dtype = settings.compute_dtype()}, .most_rows = most_rows, .as_memory_allows = true};
}

Tokenizer load_tokenizer_for(const std::filesystem::path& folder, const ModelConfig& model,
                             const std::filesystem::path& given) {
  const std::filesystem::path& from = given.empty() ? folder : given;
  if (given.empty() && !holds_tokenizer(from)) {
    throw_user_error("the model '{}' was saved without a tokenizer; name one with --tokenizer DIR", from.string());
  }
  Tokenizer tokenizer = Tokenizer::load(from);
  if (tokenizer.vocab_size() > model.vocab_size) {
    throw_user_error("the tokenizer in '{}' has {} tokens and the model {}; use the one it was trained with",
                     from.string(), tokenizer.vocab_size(), model.vocab_size);
  }
  return tokenizer;
}

}  // namespace teratron
