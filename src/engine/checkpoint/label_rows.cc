#include "checkpoint/label_rows.h"

#include <algorithm>

#include "base/error.h"
#include "model/label_names.h"

namespace teratron {

bool has_label_rows(const Parameter& parameter) { return parameter.name.starts_with("classifier."); }

LabelRows::LabelRows(const ModelConfig& stored, const ModelConfig& asked) {
  if (stored.head != ModelHead::kClassification) return;
  const auto rows = rows_by_label(stored.label_names, asked.label_names);
  check(rows.has_value(), "models with the same labels");
  if (!std::ranges::is_sorted(*rows)) rows_ = *rows;
}

std::span<const std::byte> LabelRows::ordered(const Parameter& parameter, std::span<const std::byte> bytes) {
  if (rows_.empty() || !has_label_rows(parameter)) return bytes;
  const std::size_t size = bytes.size() / rows_.size();
  copy_.clear();
  for (const std::size_t row : rows_) {
    const std::span<const std::byte> stored = bytes.subspan(row * size, size);
    copy_.insert(copy_.end(), stored.begin(), stored.end());
  }
  return copy_;
}

}  // namespace teratron
