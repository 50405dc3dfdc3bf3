#include "ops/cpu/products/text_runs.h"

#include <algorithm>
#include <cstring>

namespace teratron {

std::vector<GemmRun> text_runs(const TensorRef& lengths, std::int64_t rows) {
  if (!lengths) return {{0, rows}};
  const std::int64_t tokens = rows / lengths.elements();
  std::vector<GemmRun> runs;
  for (std::int64_t b = 0; b < lengths.elements(); ++b) {
    const std::int64_t begin = b * tokens;
    const std::int64_t text = std::clamp<std::int64_t>(lengths.as<const std::int32_t>()[b], 0, tokens);
    if (text == 0) continue;
    if (!runs.empty() && runs.back().end == begin) {
      runs.back().end += text;
    } else {
      runs.push_back({begin, begin + text});
    }
  }
  return runs;
}

void clear_padding(const TensorRef& view, std::span<const GemmRun> runs) {
  if (!view) return;
  std::int64_t begin = 0;
  const auto clear = [&](std::int64_t end) {
    const TensorRef padding = view.slice(0, begin, end);
    if (end > begin) std::memset(padding.data, 0, static_cast<std::size_t>(padding.bytes()));
  };
  for (const GemmRun& run : runs) {
    clear(run.begin);
    begin = run.end;
  }
  clear(view.dim(0));
}

}  // namespace teratron
