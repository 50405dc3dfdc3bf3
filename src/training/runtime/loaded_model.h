// A model made ready to evaluate, generate or embed: its weights on every rank, its tokenizer beside it.
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

// Before any rank runs: the model at `path`, a checkpoint or a folder of Hugging Face's. UserError: there is none, it
// is damaged, so many ranks cannot share it (and which numbers can), or `use` needs another one (weight_use.h).
WeightSource find_model(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use);
// The same of a BERT. `task`, `needed`: of require_usable().
WeightSource find_encoder(const std::filesystem::path& path, const LayoutSettings& layout, WeightUse use,
                          std::string_view task = "", const ModelConfig& needed = {});

// Whether a tokenizer's files lie in the folder of a checkpoint or of a Hugging Face model.
bool holds_tokenizer(const std::filesystem::path& folder);

// The tokenizer in `given` if that is not empty, else the one that lies beside the weights in `folder`. UserError:
// there is none, or it has more tokens than the model.
Tokenizer load_tokenizer_for(const std::filesystem::path& folder, const ModelConfig& model,
                             const std::filesystem::path& given);
inline Tokenizer load_tokenizer_for(const WeightSource& source, const std::filesystem::path& given) {
  return load_tokenizer_for(source.folder, source.model, given);
}

// --bf16, --fp16 and --tf32 of commands that only read a model.
void add_loaded_precision_fields(FieldList& list, BackendSettings& settings);

template <class Model>
struct Loaded {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};
using LoadedModel = Loaded<LanguageModel>;
using LoadedEncoder = Loaded<Encoder>;

// On every rank of a layout, each of which reads its part; stages of a pipeline have as many layers each, but for one
// more on the first ones where they don't divide. `options.tokens` 0, or more than the model has positions:
// all of them. The weights are rounded to the precision of `settings`. UserError: a damaged checkpoint, weights that
// are not finite. EnvironmentError: not enough memory for the plans of all ranks.
LoadedModel load_model(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                       const Rank& rank);
LoadedEncoder load_encoder(const WeightSource& source, const ExecutorOptions& options, const BackendSettings& settings,
                           const Rank& rank);

}  // namespace teratron
