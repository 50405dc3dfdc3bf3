// Rotary positions (Su et al., arXiv 2104.09864): pairs of elements of a head turn by an angle that grows with the
// token's position.
#pragma once

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

template <class C>
void rotary(const Rotary& args) {
  const Elements<C> x(args.x);
  const Elements<Accumulator<C>> table(args.table);
  const Elements<const std::int32_t> position_ids(args.position_ids);
  const std::int64_t pairs = args.table.dim(2);
  const bool halves = args.pairs == RotaryPairs::kHalves;
  for (std::int64_t b = 0; b < args.x.dim(0); ++b) {
    for (std::int64_t t = 0; t < args.x.dim(1); ++t) {
      const std::int64_t position = args.position_ids ? position_ids(b, t) : args.first_position + t;
      for (std::int64_t h = 0; h < args.x.dim(2); ++h) {
        for (std::int64_t r = 0; r < pairs; ++r) {
          C& first = x(b, t, h, halves ? r : 2 * r);
          C& second = x(b, t, h, halves ? r + pairs : 2 * r + 1);
          const double a = first, c = second, cosine = table(position, 0, r);
          const double sine = args.inverse ? -double{table(position, 1, r)} : double{table(position, 1, r)};
          first = static_cast<C>(a * cosine - c * sine);
          second = static_cast<C>(a * sine + c * cosine);
        }
      }
    }
  }
}

}  // namespace teratron::reference
