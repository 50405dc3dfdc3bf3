// The weights of a Hugging Face folder, in one file or several, under the names that mapping.h has.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/weights_file.h"

namespace teratron {

class HuggingFaceWeights {
 public:
  // Reads the first that is there of model.safetensors, the files that model.safetensors.index.json lists,
  // pytorch_model.bin, and those of pytorch_model.bin.index.json. Names may lack the prefix. Tensors of old versions
  // that are no weights are left out. A copy replaces its original where that is absent. UserError: missing or unsound
  // files, files that contradict the index, a name given twice. copies: those tensors that the model has once where
  // files may have them twice.
  HuggingFaceWeights(const std::filesystem::path& folder, const HuggingFaceMapping& mapping,
                     std::span<const HuggingFaceMapping::Copy> copies);

  const std::map<std::string, TensorLocation>& tensors() const { return tensors_; }  // by name, with the prefix

 private:
  void add_files(const std::filesystem::path& folder);
  void add_file(const std::filesystem::path& path);
  void add_index(const std::filesystem::path& path);
  // Tensors lie in the files where the index places them, and no others do.
  void check_places(const std::filesystem::path& index, const std::map<std::string, std::string>& places) const;

  const HuggingFaceMapping& mapping_;
  std::vector<std::unique_ptr<WeightsFile>> files_;
  std::map<std::string, TensorLocation> tensors_;
};

}  // namespace teratron
