#include "checkpoint/stored_tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/label_names.h"

namespace teratron {
namespace {

constexpr std::size_t kListed = 8;

}  // namespace

std::vector<std::string> compare_tensors(std::span<const SafetensorsEntry> there,
                                         std::span<const ExpectedTensor> expected) {
  std::map<std::string_view, const SafetensorsEntry*> by_name;
  for (const SafetensorsEntry& entry : there) by_name.emplace(entry.name, &entry);
  std::vector<std::string> faults;
  for (const ExpectedTensor& tensor : expected) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) {
      faults.push_back(fmt::format("'{}' is missing", tensor.name));
      continue;
    }
    const SafetensorsEntry& entry = *found->second;
    if (entry.shape != tensor.shape) {
      faults.push_back(fmt::format("'{}' is {} there, {} is needed", entry.name, entry.shape, tensor.shape));
    } else if (!entry.dtype || !is_floating(*entry.dtype)) {
      faults.push_back(fmt::format("'{}' has dtype {}, a floating type is needed", entry.name, entry.dtype_name));
    }
    by_name.erase(found);
  }
  for (const auto& [name, entry] : by_name) faults.push_back(fmt::format("'{}' is not part of the model", name));
  return faults;
}

std::string summary_of(const std::vector<std::string>& faults) {
  const std::size_t listed = std::min(faults.size(), kListed);
  const std::string text =
      fmt::format("{}", fmt::join(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(listed), "; "));
  return listed == faults.size() ? text : fmt::format("{}; and {} more", text, faults.size() - listed);
}

bool has_label_rows(const Parameter& parameter) { return parameter.name.starts_with("classifier."); }

LabelRows::LabelRows(const ModelConfig& stored, const ModelConfig& asked) {
  if (!tells_labels(stored.head)) return;
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
