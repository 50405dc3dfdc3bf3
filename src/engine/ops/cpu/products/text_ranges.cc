// Sequences of different lengths, padded at their ends, as ranges of rows (linear.h).

#include <algorithm>
#include <cstring>

#include "ops/cpu/products/linear.h"

namespace teratron {

std::vector<GemmRange> text_ranges(const TensorRef& lengths, std::int64_t rows) {
  if (!lengths) return {{0, rows}};
  const std::int64_t tokens = rows / lengths.elements();
  std::vector<GemmRange> ranges;
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    const std::int64_t begin = b * tokens;
    const std::int64_t text = std::clamp<std::int64_t>(lengths.as<const std::int32_t>()[b], 0, tokens);
    if (text == 0) continue;
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end += text;
    } else {
      ranges.push_back({begin, begin + text});
    }
  }
  return ranges;
}

void clear_padding(const TensorRef& view, std::span<const GemmRange> ranges) {
  if (!view) return;
  std::int64_t begin = 0;
  const auto clear = [&](std::int64_t end) {
    const TensorRef padding = view.slice(0, begin, end);
    if (end > begin) std::memset(padding.data, 0, static_cast<std::size_t>(padding.bytes()));
  };
  for (const GemmRange& range : ranges) {
    clear(range.begin);
    begin = range.end;
  }
  clear(view.dim(0));
}

}  // namespace teratron
