#include "tasks/classify/labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"

namespace teratron::classify {
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
  if (found.size() == 1) {
    throw_user_error("every example in '{}' has the label '{}'; a classifier learns to tell two apart at least",
                     table.files.front().string(), *found.begin());
  }
  return {.names = sorted_names(found)};
}

LabelWords::LabelWords(const LabelSet& labels) : labels_(labels) {
  for (const std::string& name : labels_.names) sorted_.emplace_back(name, static_cast<std::int32_t>(sorted_.size()));
  std::ranges::sort(sorted_);
}

std::int32_t LabelWords::of(const Row& row, const Table& table) const {
  if (row.label.empty()) return kUnknownLabel;
  if (labels_.are_numbers) {
    const std::optional<double> number = number_of(row.label);
    if (!number) throw_user_error("{}: the label '{}' is no number, as the model learns", table.place(row), row.label);
    return label_of_number(static_cast<float>(*number));
  }
  const auto found = std::ranges::lower_bound(sorted_, std::string_view(row.label), {},
                                              &std::pair<std::string_view, std::int32_t>::first);
  if (found == sorted_.end() || found->first != row.label) {
    throw_user_error("{}: '{}' is none of the model's labels {}", table.place(row), row.label, list_of(labels_.names));
  }
  return found->second;
}

LabelPairs label_pairs(const Table& table, const Table& said, bool are_numbers) {
  LabelPairs pairs{.set = {.are_numbers = are_numbers}};
  std::set<std::string> names;
  for (const Table* one : {&table, &said}) {
    for (const Row& row : one->rows) {
      if (!are_numbers && !row.label.empty()) names.insert(row.label);
    }
  }
  pairs.set.names.assign(names.begin(), names.end());
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

}  // namespace teratron::classify
