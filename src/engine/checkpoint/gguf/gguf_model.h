// A model of ours as one of llama.cpp's architectures: the values that describe it, its tensors, and where each
// tensor's rows are in our parameters. Names, shapes and meanings are those that llama.cpp reads (src/llama-arch.cpp
// and src/models/ there).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/gguf/gguf_file.h"
#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

// Whole rows of one parameter. A tensor is one piece, or several below each other. Pieces of a parameter follow each
// other; the first begins at row 0.
struct GgufPiece {
  std::size_t tensor = 0, parameter = 0;
  std::int64_t first_row = 0, rows = 0;
  // Rows of a head whose halves llama.cpp wants interleaved, since it turns neighbouring elements; 0: as ours.
  std::int64_t paired_rows = 0;
};

struct GgufModel {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
  std::vector<GgufPiece> pieces;          // of the tensors, in their order
  std::vector<float> frequency_divisors;  // the tensor rope_freqs.weight, which is then the last; empty: none
  std::vector<std::string> notes;         // what llama.cpp computes otherwise, for people
};

// `parameters` of the whole model, as declared_parameters has them. UserError: llama.cpp has no such model, or `type`
// no such rows; all reasons at once.
GgufModel gguf_model(const ModelConfig& config, std::span<const Parameter> parameters, GgufType type);

}  // namespace teratron
