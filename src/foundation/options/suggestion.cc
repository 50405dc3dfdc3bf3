#include "options/suggestion.h"

#include <algorithm>
#include <vector>

namespace teratron {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distance[i][j] between the first i letters of a and the first j of b. Three rows are enough.
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitute, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string> names) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;  // at most a third of the letters is wrong
  for (const std::string& known : names) {
    // The distance is at least the difference of the lengths. A user's name may be of any length.
    if (std::max(name.size(), known.size()) - std::min(name.size(), known.size()) >= least) continue;
    const std::size_t distance = edit_distance(name, known);
    if (distance < least) {
      least = distance;
      nearest = known;
    }
  }
  if (!nearest.empty() || name.size() < 3) return nearest;
  const auto longer =
      std::find_if(names.begin(), names.end(), [&](const auto& known) { return known.starts_with(name); });
  if (longer != names.end()) return *longer;
  constexpr std::size_t kShort = 4;  // such as --lr
  for (const std::string& known : names) {
    if (known.size() >= std::max(kShort, nearest.size() + 1) && name.starts_with(known)) nearest = known;
  }
  return nearest;
}

}  // namespace teratron
