#include "checkpoint/hugging_face/weights.h"

#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingles[] = {"model.safetensors", "pytorch_model.bin"};

}  // namespace

HuggingFaceWeights::HuggingFaceWeights(const fs::path& folder, const HuggingFaceMapping& mapping,
                                       std::span<const HuggingFaceMapping::Copy> copies)
    : mapping_(mapping) {
  add_files(folder);
  for (const auto& [name, of] : copies) {
    const auto copy = tensors_.find(std::string(name));
    if (copy != tensors_.end() && tensors_.emplace(of, copy->second).second) tensors_.erase(copy);
  }
}

void HuggingFaceWeights::add_files(const fs::path& folder) {
  std::error_code error;
  for (const std::string_view single : kSingles) {
    if (fs::exists(folder / single, error)) return add_file(folder / single);
    const fs::path index = folder / fmt::format("{}.index.json", single);
    if (fs::exists(index, error)) return add_index(index);
  }
  throw_user_error("'{}' has neither {} nor an index of such files ({}.index.json)", folder.string(),
                   fmt::join(kSingles, " nor "), kSingles[0]);
}

void HuggingFaceWeights::add_file(const fs::path& path) {
  files_.push_back(open_weights_file(path));
  for (const SafetensorsEntry& entry : files_.back()->tensors()) {
    const std::optional<std::string> name = mapping_.full_name(entry.name);
    if (name && !tensors_.emplace(*name, TensorLocation{files_.back().get(), &entry}).second) {
      throw_user_error("'{}' has the tensor '{}' a second time", path.string(), entry.name);
    }
  }
}

void HuggingFaceWeights::add_index(const fs::path& path) {
  const nlohmann::json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  const JsonFields map(fields.object("weight_map"), path);
  std::set<std::string> names;
  for (const auto& item : fields["weight_map"].items()) names.insert(map.string(item.key()));
  for (const std::string& name : names) {
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
      throw_user_error("'{}' lists '{}', which is not the name of a file beside it", path.string(), name);
    }
    add_file(path.parent_path() / name);
  }
  std::map<std::string, std::string> places;
  for (const auto& item : fields["weight_map"].items()) {
    if (const auto full_name = mapping_.full_name(item.key())) places.emplace(*full_name, map.string(item.key()));
  }
  check_places(path, places);
}

void HuggingFaceWeights::check_places(const fs::path& index, const std::map<std::string, std::string>& places) const {
  for (const auto& [name, file] : places) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw_user_error("'{}' places '{}' in {}, which does not have it", index.string(), name, file);
    }
    const fs::path there = found->second.file->path().filename();
    if (there == file) continue;
    throw_user_error(
        "'{}' places '{}' in {}, and {} has it; the files are of several models, or the index is of another",
        index.string(), name, file, there.string());
  }
  for (const auto& [name, location] : tensors_) {
    if (places.contains(name)) continue;
    throw_user_error(
        "'{}' does not list '{}', which {} has; the files are of several models, or the index is of another",
        index.string(), name, location.file->path().filename().string());
  }
}

}  // namespace teratron
