// Models ready to evaluate, generate or embed: weights on every rank, and a tokenizer.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "model/encoder.h"
#include "model/language_model.h"
#include "runtime/backend_choice.h"
#include "runtime/ranks.h"
#include "runtime/weight_use.h"
#include "settings/layout_settings.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// Finds the model at `path`, a checkpoint or a Hugging Face folder, before any rank runs. UserError: none is there, it
// is damaged, the layout does not divide it, or `use` needs another model (weight_use.h).
WeightSource find_model(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use);
// Finds a BERT in the same way. `task`, `needed`: as require_usable().
WeightSource find_encoder(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use,
                          std::string_view task = "", const ModelConfig& needed = {});

// Loads the tokenizer in `given`, or, where that is empty, the one beside the weights in `folder`. UserError: there is
// none, or it has more tokens than the model.
Tokenizer load_tokenizer_for(const std::filesystem::path& folder, const ModelConfig& model,
                             const std::filesystem::path& given);
inline Tokenizer load_tokenizer_for(const WeightSource& source, const std::filesystem::path& given) {
  return load_tokenizer_for(source.folder, source.model, given);
}

// Adds the precision and the back end of commands that only read a model.
void add_loaded_backend_fields(FieldList& list, BackendSettings& settings);

template <class Model>
struct Loaded {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};
using LoadedModel = Loaded<LanguageModel>;
using LoadedEncoder = Loaded<Encoder>;

// Loads a model; every rank of the layout calls it and reads its part. Stages have equal numbers of layers; the first
// ones take the rest. `options.tokens` is at most the model's positions, and 0 means all of them. Weights are rounded
// to the precision of `settings`. `batch_flag`: the flag of options.batch or options.caches ("--batch-size"); empty:
// there is none. UserError: a damaged checkpoint, weights that are not finite. EnvironmentError: not enough memory for
// the plans of all ranks; advises the flags that lower it.
LoadedModel load_model(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                       const Rank& rank, std::string_view batch_flag = "");
LoadedEncoder load_encoder(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                           const Rank& rank, std::string_view batch_flag = "");

// ExecutorOptions::packed_weights of a loaded model whose calls have at most so many rows (batch * tokens): copies of
// all its layers' weights, where memory allows. Nothing: not on a CPU.
std::optional<WeightPacking> keep_packed(const BackendSettings& settings, std::int64_t most_rows);

}  // namespace teratron
