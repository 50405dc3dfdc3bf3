// Our models as files for llama.cpp and the programs built on it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/gguf/gguf_file.h"

namespace teratron {

// Format that the weights are read from.
enum class GgufSource { kCheckpoint, kHuggingFace };

// Writes the model in `in`, a checkpoint as load_checkpoint takes it or a folder of Hugging Face's, to the file `out`,
// with `tokenizer`'s values. A few MB of the weights at a time are in memory. Returns what llama.cpp computes
// otherwise, for people. UserError, before anything is written: no such model or a damaged one, values that are not
// finite or larger than `type` holds; what llama.cpp has not (gguf_model.h). EnvironmentError: a full disk, no
// permission.
std::vector<std::string> export_to_gguf(GgufSource source, const std::filesystem::path& in,
                                        const std::filesystem::path& out, GgufType type, const GgufMetadata& tokenizer);

}  // namespace teratron
