// WholeCheckpoint: the weights of one checkpoint, compared with its model, for conversion to other formats.
#pragma once

#include <filesystem>
#include <vector>

#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/tensor_files.h"
#include "nn/parameter.h"

namespace teratron {

class WholeCheckpoint {
 public:
  // `checkpoint` as load_checkpoint takes it. UserError: there is none, or its tensors are not those of its model.
  explicit WholeCheckpoint(const std::filesystem::path& checkpoint);
  WholeCheckpoint(const WholeCheckpoint&) = delete;
  WholeCheckpoint& operator=(const WholeCheckpoint&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  const ModelConfig& model() const { return manifest_.model; }
  const std::vector<Parameter>& parameters() const { return parameters_; }  // of the whole model, without memory
  const TensorFiles::Location& at(std::size_t parameter) const { return weights_.at(parameters_[parameter].name); }

  // Checks of all weights, before they are copied into files that have no checksums. DamagedCheckpoint: a file differs
  // from its checksum. UserError: a value is infinite or not a number.
  void require_intact() const;
  void require_finite() const;

  DType dtype(std::size_t parameter) const { return *at(parameter).entry->dtype; }
  // The bytes of a parameter, a few MB at a time.
  void pass_on(std::size_t parameter, const ByteSink& sink) const;

 private:
  std::filesystem::path folder_;
  Manifest manifest_;
  TensorFiles weights_;
  std::vector<Parameter> parameters_;
};

}  // namespace teratron
