// Sequences of different lengths with padding behind them, as runs of rows that are multiplied.
#pragma once

#include <span>
#include <vector>

#include "ops/cpu/products/gemm.h"
#include "tensor/tensor.h"

namespace teratron {

// The rows with text, of all that there are; neighbours are one run. Without lengths, all of them.
std::vector<GemmRun> text_runs(const TensorRef& lengths, std::int64_t rows);

// The rows of `view` between the runs become 0; nothing where there is no view.
void clear_padding(const TensorRef& view, std::span<const GemmRun> runs);

}  // namespace teratron
