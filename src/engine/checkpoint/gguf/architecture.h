// llama.cpp's architectures, a row of one table each: what it computes, and which of our models that is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf/gguf_file.h"
#include "model/config.h"

namespace teratron {

struct GgufArchitecture {
  ModelKind kind;
  std::string_view name;
  bool fused_qkv = false;         // queries, keys and values are one tensor
  bool pairs_neighbours = false;  // rotary positions turn elements 2 i and 2 i + 1 of a head, not i and i + half
  bool any_head_size = false;     // heads need not be hidden size / heads wide
  bool needs_output = false;      // the output projection is a tensor also where it is the embedding
  bool takes_divisors = false;    // of rotary frequencies, a tensor
  bool takes_share = false;       // rotary positions on a part of a head
  bool may_be_parallel = false;   // attention and MLP beside each other (NormPlacement::kParallel)
};

// UserError: llama.cpp's files of this family are not written yet.
const GgufArchitecture& gguf_architecture(ModelKind kind);

// Faults: what the model asks for and the architecture does not compute. Empty: it can be written.
std::vector<std::string> faults_as(const GgufArchitecture& architecture, const ModelConfig& config);
// Notes for people: what llama.cpp computes a little otherwise, or only up to a number of tokens.
std::vector<std::string> notes_on(const ModelConfig& config);
GgufMetadata metadata_as(const GgufArchitecture& architecture, const ModelConfig& config);
// By how much Llama 3.1's scaling divides the frequency of each pair; empty: another scaling, or none.
std::vector<float> frequency_divisors(const ModelConfig& config);

}  // namespace teratron
