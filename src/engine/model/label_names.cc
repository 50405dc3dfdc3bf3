#include "model/label_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/ascii.h"

namespace teratron {
namespace {

char plain(char c) { return c == ' ' || c == '-' ? '_' : ascii_lower(c); }

}  // namespace

bool is_same_label(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, plain, plain);
}

std::string plain_label(std::string_view name) {
  std::string result(name);
  std::ranges::transform(result, result.begin(), plain);
  return result;
}

std::string default_label_name(std::size_t row) { return fmt::format("LABEL_{}", row); }

bool are_numbers(std::span<const std::string> names) {
  const auto count_from_0 = [&](const auto& name_of) {
    for (std::size_t row = 0; row < names.size(); ++row) {
      if (!is_same_label(names[row], name_of(row))) return false;
    }
    return true;
  };
  return count_from_0(default_label_name) || count_from_0([](std::size_t row) { return fmt::format("{}", row); });
}

std::string text_of_labels(std::int64_t count, std::span<const std::string> names) {
  if (count == 1) return "a number";
  return names.empty() ? fmt::format("{} labels", count) : fmt::format("{} labels ({})", count, fmt::join(names, ", "));
}

std::optional<std::vector<std::size_t>> rows_by_label(std::span<const std::string> stored,
                                                      std::span<const std::string> asked) {
  std::vector<std::size_t> rows(std::max(stored.size(), asked.size()));
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (stored.empty() || asked.empty()) return rows;
  if (stored.size() != asked.size()) return std::nullopt;
  std::unordered_map<std::string, std::size_t> row_of;  // of labels that were not asked for yet
  for (std::size_t row = 0; row < stored.size(); ++row) {
    if (!row_of.try_emplace(plain_label(stored[row]), row).second) return std::nullopt;
  }
  for (std::size_t label = 0; label < asked.size(); ++label) {
    const auto found = row_of.extract(plain_label(asked[label]));
    if (found.empty()) return std::nullopt;
    rows[label] = found.mapped();
  }
  return rows;
}

}  // namespace teratron
