#include "checkpoint/tensor_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

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

}  // namespace teratron
