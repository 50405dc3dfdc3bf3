// Writes one checkpoint's folder, whatever its tensors come from: a model in device memory or another file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

// UserError: `tensor` of the checkpoint after `iteration` updates holds a value that is not finite.
[[noreturn]] void throw_not_finite(const std::string& tensor, std::int64_t iteration);

// Nothing is visible before publish(), and nothing remains without it. EnvironmentError: a full disk, no permission.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path root, RunOrigin run, const ModelConfig& config, const TrainingState& state);

  // `fill(i, sink)` passes on the bytes of tensor i.
  using Fill = std::function<void(std::size_t tensor, const ByteSink& sink)>;
  void write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors, const Fill& fill);
  void write_file(const std::string& file_name, std::string_view content);

  // The first tensor with a value that is not finite; empty: there is none.
  const std::string& not_finite() const { return not_finite_; }

  // Whether the checkpoint that publish() would replace has the same model and files. False: there is none.
  bool is_there_already() const;

  // Makes it the current checkpoint; returns its folder. UserError where a value is not finite: no files remain.
  std::filesystem::path publish();

 private:
  std::filesystem::path root_, final_path_;
  FolderInProgress folder_;
  Manifest manifest_;
  std::string not_finite_;
};

}  // namespace teratron
