// Writes one checkpoint's folder, whatever its tensors come from: a model in device memory or another file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_stream.h"

namespace teratron {

// Nothing of it is seen before publish(), and nothing is left behind without. EnvironmentError: a full disk, no
// permission.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path root, const ModelConfig& config, const TrainingState& state);

  // `fill(i, sink)` passes on the bytes of tensor i.
  using Fill = std::function<void(std::size_t tensor, const ByteSink& sink)>;
  void write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors, const Fill& fill);
  void write_file(const std::string& file_name, std::string_view content);

  // Makes it the current checkpoint; returns its folder.
  std::filesystem::path publish();

 private:
  std::filesystem::path root_, final_path_;
  FolderInProgress folder_;
  Manifest manifest_;
};

}  // namespace teratron
