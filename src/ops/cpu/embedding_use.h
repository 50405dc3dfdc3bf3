// A row of a batch that used an entry of the token table; rows are sorted by entry to sum their gradients.
#pragma once

#include <compare>
#include <cstdint>

namespace teratron {

struct Use {
  std::int64_t entry, row;
  auto operator<=>(const Use&) const = default;
};

inline bool entry_less(const Use& a, const Use& b) { return a.entry < b.entry; }

}  // namespace teratron
