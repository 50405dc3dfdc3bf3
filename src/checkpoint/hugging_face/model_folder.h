// A folder that save_pretrained wrote, opened: every tensor that our model needs is there, in the shape that it needs.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "checkpoint/hugging_face/gpt2_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/hugging_face/weights.h"
#include "checkpoint/tensor_stream.h"

namespace teratron {

class HuggingFaceFolder {
 public:
  // UserError: not a GPT-2, or one that computes what ours does not; weights missing, unsound, or of another shape.
  explicit HuggingFaceFolder(const std::filesystem::path& folder);

  const ModelConfig& model() const { return config_.model; }
  const std::vector<Parameter>& parameters() const { return parameters_; }  // of the whole model, without memory
  DType dtype(std::size_t parameter) const { return *place(parameter).entry->dtype; }

  // The bytes of a parameter, turned as ours are, in the type that they are stored in, a few MB at a time.
  void pass_on(std::size_t parameter, const ByteSink& sink) const;

 private:
  const HuggingFaceWeights::Location& place(std::size_t parameter) const {
    return weights_.tensors().at(tensors_[parameter].name);
  }

  HuggingFaceConfig config_;
  HuggingFaceWeights weights_;
  std::vector<Parameter> parameters_;
  std::vector<HuggingFaceTensor> tensors_;  // of the parameters, in their order
};

}  // namespace teratron
