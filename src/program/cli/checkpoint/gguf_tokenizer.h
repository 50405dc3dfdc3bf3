// A tokenizer's values in a GGUF file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/gguf/gguf_file.h"

namespace teratron {

// Metadata of the tokenizer in `folder`, or that there is none. Adds to `notes` what llama.cpp does otherwise.
// UserError: llama.cpp has no such tokenizer.
GgufMetadata gguf_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size,
                            std::vector<std::string>& notes);

}  // namespace teratron
