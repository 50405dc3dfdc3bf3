// Copies that change the floating type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace teratron {

// Copies `count` elements that lie side by side, on this thread.
using CopyRow = void (*)(std::byte* to, const std::byte* from, std::int64_t count);

// Exact where `to` is wider; else rounded once, to nearest even. Both are floating.
CopyRow conversion(DType to, DType from);

}  // namespace teratron
