#include "tasks/custom/labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"

namespace teratron::custom {
namespace {

bool is_whole(double number) { return number == std::floor(number); }

// "a, b, c", or the first ten and how many more.
std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  const std::span<const std::string> shown(names.data(), std::min(names.size(), kShown));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

std::vector<std::string> sorted_names(const std::set<std::string>& found) {
  std::vector<std::string> names(found.begin(), found.end());
  const auto whole = [](const std::string& name) {
    const std::optional<double> number = number_of(name);
    return number && is_whole(*number);
  };
  if (std::ranges::all_of(names, whole))
    std::ranges::stable_sort(names, {}, [](auto& name) { return *number_of(name); });
  return names;
}

// Keeps the shortest name of each number. `names` are sorted by value.
void join_equal_numbers(std::vector<std::string>& names) {
  std::vector<std::string> joined;
  for (std::string& name : names) {
    if (joined.empty() || number_of(joined.back()) != number_of(name)) {
      joined.push_back(std::move(name));
    } else if (name.size() < joined.back().size()) {
      joined.back() = std::move(name);
    }
  }
  names = std::move(joined);
}

}  // namespace

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_all = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!is_all || !(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return std::nullopt;
  return number;
}

LabelSet labels_in(const Table& table, LabelKind kind) {
  std::set<std::string> found;
  const Row* no_number = nullptr;
  const Row* fraction = nullptr;
  for (const Row& row : table.rows) {
    if (row.label.empty()) continue;
    const std::optional<double> number = number_of(row.label);
    if (!number && no_number == nullptr) no_number = &row;
    if (number && !is_whole(*number) && fraction == nullptr) fraction = &row;
    found.insert(row.label);
  }
  if (found.empty()) {
    throw_user_error("no example in '{}' has a label to train on; name the column of labels with --label-column{}",
                     table.files.front().string(),
                     table.columns.empty() ? "" : fmt::format(" (there are {})", fmt::join(table.columns, ", ")));
  }
  if (kind == LabelKind::kNumbers && no_number != nullptr) {
    throw_user_error("{}: the label '{}' is no number, as --labels numbers needs", table.place(*no_number),
                     no_number->label);
  }
  if (kind == LabelKind::kAuto && no_number != nullptr && fraction != nullptr) {
    throw_user_error(
        "{}: the label '{}' is no number, and '{}' of another example is one with a fraction; mend it or empty its "
        "cell to learn numbers, or take all labels as names by --labels names",
        table.place(*no_number), no_number->label, fraction->label);
  }
  const bool are_numbers =
      kind == LabelKind::kNumbers || (kind == LabelKind::kAuto && no_number == nullptr && fraction != nullptr);
  if (are_numbers) return {.are_numbers = true};
  std::vector<std::string> names = sorted_names(found);
  if (kind == LabelKind::kAuto && no_number == nullptr) join_equal_numbers(names);
  if (names.size() == 1) {
    throw_user_error("every example in '{}' has the label '{}'; a classifier learns to tell two apart at least",
                     table.files.front().string(), names.front());
  }
  return {.names = std::move(names)};
}

LabelWords::LabelWords(const LabelSet& labels) : labels_(labels) {
  for (const std::string& name : labels_.names) {
    const auto word = static_cast<std::int32_t>(sorted_.size());
    sorted_.emplace_back(name, word);
    if (const std::optional<double> number = number_of(name)) numbers_.emplace_back(*number, word);
  }
  std::ranges::sort(sorted_);
  std::ranges::sort(numbers_);
}

std::optional<std::int32_t> LabelWords::find(std::string_view label) const {
  const auto look_up = [](const auto& known, const auto& wanted) -> std::optional<std::int32_t> {
    const auto found = std::ranges::lower_bound(known, wanted, {}, [](const auto& one) { return one.first; });
    return found == known.end() || found->first != wanted ? std::nullopt : std::optional(found->second);
  };
  if (const std::optional<std::int32_t> word = look_up(sorted_, label)) return word;
  const std::optional<double> number = number_of(label);
  return number ? look_up(numbers_, *number) : std::nullopt;
}

std::int32_t LabelWords::of(const Row& row, const Table& table) const {
  if (row.label.empty()) return kUnknownLabel;
  if (labels_.are_numbers) {
    const std::optional<double> number = number_of(row.label);
    if (!number) throw_user_error("{}: the label '{}' is no number, as the model learns", table.place(row), row.label);
    return label_of_number(static_cast<float>(*number));
  }
  if (const std::optional<std::int32_t> word = find(row.label)) return *word;
  throw_user_error("{}: '{}' is none of the model's labels {}", table.place(row), row.label, list_of(labels_.names));
}

LabelPairs label_pairs(const Table& table, const Table& said, LabelKind kind) {
  const bool are_numbers = kind == LabelKind::kNumbers;
  LabelPairs pairs{.set = {.are_numbers = are_numbers}};
  std::set<std::string> names;
  const auto add_labels = [&](const Table& from, bool joins) {
    const LabelWords known(pairs.set);
    std::set<std::string> found;
    for (const Row& row : from.rows) {
      if (!are_numbers && !row.label.empty() && !known.has(row.label)) found.insert(row.label);
    }
    std::vector<std::string> others(found.begin(), found.end());
    if (joins && std::ranges::all_of(others, [](auto& name) { return number_of(name).has_value(); })) {
      std::ranges::stable_sort(others, {}, [](auto& name) { return *number_of(name); });
      join_equal_numbers(others);
    }
    names.insert(others.begin(), others.end());
    pairs.set.names.assign(names.begin(), names.end());
  };
  add_labels(said, /*joins=*/false);
  add_labels(table, /*joins=*/kind == LabelKind::kAuto);
  const LabelWords words(pairs.set);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    pairs.labels.push_back(words.of(table.rows[i], table));
    pairs.said.push_back(words.of(said.rows[i], said));
  }
  pairs.unlabelled = std::ranges::count(pairs.labels, kUnknownLabel);
  if (pairs.labelled() > 0) return pairs;
  throw_user_error("the data have no labels to score by; name their column with --label-column");
}

std::int64_t leave_out_unlabelled(Table& table, std::vector<std::int32_t>& labels) {
  std::vector<Row> kept;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (labels[i] != kUnknownLabel) kept.push_back(std::move(table.rows[i]));
  }
  table.rows = std::move(kept);
  return static_cast<std::int64_t>(std::erase(labels, kUnknownLabel));
}

}  // namespace teratron::custom
