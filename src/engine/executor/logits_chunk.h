// Number of rows of logits that exist at a time, if the caller does not set it.
#pragma once

#include "base/block_size.h"
#include "comm/mesh.h"
#include "executor/model.h"
#include "executor/options.h"

namespace teratron {

constexpr std::int64_t kFewestRowsOfLogits = block_size(256, 2);

// ExecutorOptions::logits_chunk where it is not 0. Else, on CPUs, 256 rows, or 512 in 16 bits, which are as many bytes:
// their logits stay in the cache until they are used up. On devices every chunk costs a pass over the gradient of the
// output projection, so it is the largest of 8192, 4096, .. and 256 rows with which the plan leaves a tenth of the
// rank's share of its device free. All ranks of the mesh call it together and get the smallest of their numbers.
std::int64_t choose_logits_chunk(Model& model, const ExecutorOptions& options, const Mesh& mesh, Backend& backend);

}  // namespace teratron
