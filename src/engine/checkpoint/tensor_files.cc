#include "checkpoint/tensor_files.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/native/integrity.h"

namespace teratron {
namespace {

constexpr std::string_view kExtension = ".safetensors";

std::string_view name_of(TensorKind kind) { return kind == TensorKind::kModel ? "model" : "optimizer"; }

}  // namespace

bool is_tensor_file(std::string_view file_name, TensorKind kind) {
  const std::string_view begin = name_of(kind);
  if (!file_name.starts_with(begin) || !file_name.ends_with(kExtension)) return false;
  const std::string_view rest = file_name.substr(begin.size());
  return rest == kExtension || rest.starts_with('-');
}

bool is_tensor_file(std::string_view file_name) {
  return is_tensor_file(file_name, TensorKind::kModel) || is_tensor_file(file_name, TensorKind::kOptimizer);
}

bool has_optimizer(const Manifest& manifest) {
  return std::ranges::any_of(manifest.files,
                             [](const auto& file) { return is_tensor_file(file.first, TensorKind::kOptimizer); });
}

std::string tensor_file_name(TensorKind kind, std::size_t index, std::size_t count) {
  if (count == 1) return fmt::format("{}{}", name_of(kind), kExtension);
  return fmt::format("{}-{:05}-of-{:05}{}", name_of(kind), index + 1, count, kExtension);
}

std::vector<std::vector<SafetensorsDeclaration>> distribute(std::vector<SafetensorsDeclaration> tensors,
                                                            std::uint64_t max_file_bytes) {
  std::vector<std::vector<SafetensorsDeclaration>> files;
  std::uint64_t bytes = 0;
  for (SafetensorsDeclaration& tensor : tensors) {
    const std::uint64_t more = bytes_of(tensor);
    if (files.empty() || (max_file_bytes > 0 && bytes + more > max_file_bytes)) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += more;
    files.back().push_back(std::move(tensor));
  }
  return files;
}

void TensorFiles::Location::verify() const { check_tensor(*file, *entry, *record); }

TensorFiles::TensorFiles(const std::filesystem::path& folder, const Manifest& manifest, TensorKind kind, bool verify) {
  for (const auto& [name, record] : manifest.files) {
    if (!is_tensor_file(name, kind)) continue;
    const SafetensorsFile& file = files_.emplace_back(open_tensors(folder / name, record, verify));
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (!locations_.emplace(entry.name, Location{{&file, &entry}, &record}).second) {
        throw DamagedCheckpoint(
            fmt::format("'{}' is damaged: tensor '{}' lies in two files", folder.string(), entry.name));
      }
      entries_.push_back(entry);
    }
  }
}

const TensorFiles::Location& TensorFiles::at(std::string_view name) const {
  const auto found = locations_.find(name);
  check(found != locations_.end(), "a tensor that is there");
  return found->second;
}

}  // namespace teratron
