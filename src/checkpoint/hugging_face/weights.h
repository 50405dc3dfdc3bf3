// The weights of a Hugging Face GPT-2 folder, in one file or several, under the names that mapping.h has.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace teratron {

constexpr std::string_view kOutputProjection = "lm_head.weight";  // the one name that never has the prefix

class HuggingFaceWeights {
 public:
  // Reads model.safetensors, or the files that model.safetensors.index.json lists. Names may lack the prefix
  // "transformer."; the masks that old versions stored among the weights are left out. UserError: missing or unsound
  // files, a name given twice, weights only as pytorch_model.bin (says how to convert them).
  explicit HuggingFaceWeights(const std::filesystem::path& folder);

  struct Location {
    const SafetensorsFile* file;
    const SafetensorsEntry* entry;
    std::span<const std::byte> bytes() const { return file->bytes(*entry); }
    void release() const { file->release(*entry); }
  };
  const std::map<std::string, Location>& tensors() const { return tensors_; }  // by name, with the prefix

 private:
  void add_file(const std::filesystem::path& path);
  void add_index(const std::filesystem::path& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Location> tensors_;
};

}  // namespace teratron
