// Choices that memory decides, where the caller does not: rows of logits, activations that are kept, and packed
// weights.
#pragma once

#include "base/block_size.h"
#include "comm/mesh.h"
#include "executor/model.h"
#include "executor/options.h"

namespace teratron {

constexpr std::int64_t kFewestRowsOfLogits = block_size(256, 2);

// Fills in logits_chunk where it is 0, and kept_layers where there is no number. On CPUs logits are 256 rows at a time,
// or 512 in 16 bits, which are as many bytes and stay in the cache until they are used up, and no layer keeps what is
// cheap to make again. On devices every chunk costs a pass over the gradient of the output projection, so it is the
// largest of 8192, 4096, .. and 256 rows with which the plan leaves a tenth of the rank's share of its device free; all
// ranks of the mesh get the smallest of their numbers. As many layers as then fit into what is left keep their
// activations; each rank has a number of its own. On CPUs, packed weights that are as memory allows are left out where
// the plan with them takes more than nine tenths of the rank's share of what the host has left. All ranks call it
// together.
void choose_by_memory(Model& model, ExecutorOptions& options, const Mesh& mesh, Backend& backend);

}  // namespace teratron
