// Arguments of kernels, and tables of their functions. They are shared by all instruction sets: a kernel's own file,
// which Highway reads once for each set, cannot declare them.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "ops/backend.h"

namespace teratron {

// Index of activation (b, t, 0) of local [batch, tokens, hidden] in the whole, unsplit tensor, by which its dropout
// mask is drawn (struct Dropout).
inline std::int64_t first_element(const Dropout& dropout, std::int64_t b, std::int64_t t, std::int64_t hidden) {
  return ((dropout.first_sample + b) * dropout.sequence_length + dropout.first_position + t) * hidden;
}

// sum = residual + dropout(branch); without a residual (null) sum = dropout(branch).
struct DropoutRange {
  void* sum;
  const void* residual;
  const void* branch;
  const Dropout& dropout;
};

// to = keep * to + scale * from for elements [begin, end); `to` is not read where keep is 0.
struct ScaleAddRange {
  const TensorRef& to;
  double keep;
  const TensorRef& from;
  double scale;
};
using ScaleAdd = void (*)(const ScaleAddRange& range, std::int64_t begin, std::int64_t end);

struct ElementwiseKernels {
  // y = activation(x) and dx = dy * activation'(x) for elements [begin, end).
  void (*activation_forward)(const ActivationForward& args, std::int64_t begin, std::int64_t end);
  void (*activation_backward)(const ActivationBackward& args, std::int64_t begin, std::int64_t end);
  // sum = a + b for elements [begin, begin + count).
  void (*add)(void* sum, const void* a, const void* b, std::int64_t begin, std::int64_t count);
  // Elements [begin, begin + count) in memory, which start at `first` in the whole tensor.
  void (*dropout_add)(const DropoutRange& range, std::int64_t begin, std::int64_t first, std::int64_t count);
};

// A row of a batch that used an entry of a table. Rows are sorted by entry to sum their gradients.
struct Use {
  std::int64_t entry, row;
  auto operator<=>(const Use&) const = default;
};

inline bool entry_less(const Use& a, const Use& b) { return a.entry < b.entry; }

struct EmbeddingGradientKernels {
  void (*add_positions)(const EmbeddingBackward& args, std::int64_t begin, std::int64_t end);
  void (*add_entry)(const EmbeddingBackward& args, const TensorRef& table, std::span<const Use> uses);
};

}  // namespace teratron
