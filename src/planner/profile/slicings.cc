#include "profile/slicings.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "slicing/cost/cost_table.h"

namespace teratron {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kMostSlices = 32, kShortest = 16;

// Slices of this length, as many as fit, then one with the rest.
Lengths slices_of(std::int64_t units, std::int64_t length) {
  Lengths lengths(static_cast<std::size_t>(units / length), length);
  if (const std::int64_t rest = units % length; rest > 0) lengths.push_back(rest);
  return lengths;
}

// Slices that become shorter; of many, the first is 2.3 times the last.
Lengths falling_slices(std::int64_t units, int count) {
  Lengths lengths;
  std::int64_t begin = 0;
  for (int i = 1; i <= count; ++i) {
    const double x = static_cast<double>(i) / count;
    const auto end = static_cast<std::int64_t>(std::lround(static_cast<double>(units) * (1.4 * x - 0.4 * x * x)));
    lengths.push_back(end - begin);
    begin = end;
  }
  return lengths;
}

}  // namespace

std::vector<ProfileSlicing> profile_slicings(std::int64_t tokens, int stages, std::int64_t unit) {
  if (tokens / unit < 8) {
    throw_user_error(
        "a profile needs sequences of {} tokens or more, not of {}: shorter ones have no slices to compare", 8 * unit,
        tokens);
  }
  if (const std::int64_t grid = slicing::slice_grid(tokens, unit, tokens); tokens % grid == 0) unit = grid;
  const std::int64_t units = tokens / unit;
  const std::int64_t shortest = std::max(units / kMostSlices, std::min((kShortest + unit - 1) / unit, units / 8));
  std::vector<ProfileSlicing> slicings;
  const auto add = [&](Lengths lengths, bool held_out, int micro_batches = 1, bool is_deferred = false) {
    if (*std::min_element(lengths.begin(), lengths.end()) < shortest) return;
    for (std::int64_t& length : lengths) length *= unit;
    slicings.push_back({std::move(lengths), micro_batches, held_out, is_deferred});
  };
  for (int count = 1; count <= kMostSlices && count <= units; count *= 2)
    add(pipeline::even_slices(units, count), false);
  for (const int count : {3, 6, 12}) {
    if (count <= units) add(falling_slices(units, count), true);
  }
  for (const std::int64_t parts : {4, 8, 16, 32})
    add(slices_of(units, std::max<std::int64_t>(1, 3 * units / parts)), false);
  if (stages > 1) {
    add({units}, false, 2 * stages);
    for (const int count : {4, 8}) add(pipeline::even_slices(units, count), false, stages);
    // What two parts cost above one depends on the number of slices, so the shortest slices are measured too: a line
    // through longer ones does not predict it.
    int most = 8;
    while (most < kMostSlices && units / (2 * most) >= shortest) most *= 2;
    for (const int count : {2, most > 8 ? 8 : 4, most}) add(pipeline::even_slices(units, count), false, 1, true);
  }
  return slicings;
}

}  // namespace teratron
