// Copies between large memory.
#pragma once

#include <cstddef>
#include <span>

namespace teratron {

// Copies `from` to the beginning of `to`, which do not overlap. The copy is not read soon: it is written past the
// caches, where the processor can, so that memory is not read before it is written.
void copy_past_caches(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace teratron
