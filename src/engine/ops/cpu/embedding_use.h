// A row of a batch that used an entry of a table; rows are sorted by entry to sum their gradients. And the
// loops over them, for one storage type.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "ops/backend.h"

namespace teratron {

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
