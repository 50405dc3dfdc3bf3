// A checkpoint made ready to evaluate or generate: its weights in a runner, its tokenizer beside it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "model/gpt2.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct LoadedModel {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Gpt2Runner> runner;
  std::filesystem::path folder;  // of the checkpoint
};

// UserError: no checkpoint at `path`, or a damaged one. EnvironmentError: not enough memory for the plan.
LoadedModel load_model(const std::filesystem::path& path, const RunnerOptions& options, bool guard_memory = false);

// The tokenizer in `folder` if that is given, else the one saved with the checkpoint. UserError: there is none, or it
// has more tokens than the model.
Tokenizer load_tokenizer_for(const LoadedModel& model, const std::filesystem::path& folder);

}  // namespace teratron
