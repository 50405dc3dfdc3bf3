// Number of columns of each row of logits that are in its softmax (struct CrossEntropyPartials), for kernels.
#pragma once

#include <cstdint>

#include "ops/operations.h"

namespace teratron {

struct ValidColumns {
  std::int64_t most;                      // columns of any row
  const std::int32_t* lengths = nullptr;  // of sequences, one after the other; null: every row has `most`
  std::int64_t rows_each = 1;             // rows of a sequence

  // `args` are checked arguments of cross_entropy_partials() or cross_entropy_backward().
  template <class Arguments>
  explicit ValidColumns(const Arguments& args) : most(args.valid_columns) {
    if (!args.lengths) return;
    lengths = args.lengths.template as<std::int32_t>();
    rows_each = args.logits.dim(0) / args.lengths.dim(0);
  }

  constexpr std::int64_t of(std::int64_t row) const {
    if (lengths == nullptr) return most;
    const std::int64_t length = lengths[row / rows_each];
    return length < most ? length : most;
  }
};

}  // namespace teratron
