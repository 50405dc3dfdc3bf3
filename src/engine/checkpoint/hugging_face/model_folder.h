// A folder that save_pretrained wrote, opened: every tensor that our model needs is there, in the shape that it needs.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/hugging_face/weights.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

class HuggingFaceFolder {
 public:
  // UserError: not a model of a kind that we have, or one that computes what ours does not; weights missing, unsound,
  // or of another shape.
  explicit HuggingFaceFolder(const std::filesystem::path& folder);

  const ModelConfig& model() const { return model_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }  // of the whole model, without memory
  // Tensors that the folder lacks, of ends that may be absent (BertForMaskedLM has no pooler). Their values are drawn
  // as initial weights are, the same each time.
  const std::vector<std::string>& drawn() const { return drawn_; }
  // Why model() is without the task's head that the folder has; empty: it has none, or ours has it.
  const std::string& unusable_head() const { return unusable_head_; }
  bool is_drawn(std::size_t parameter) const;

  // UserError where a stored value is infinite or not a number; reads all of them.
  void require_finite() const;

  // One type that holds every value of a parameter as it is stored.
  DType dtype(std::size_t parameter) const;
  // The bytes of a parameter, turned as ours are, in that type, a few MB at a time.
  void pass_on(std::size_t parameter, const ByteSink& sink) const;

 private:
  HuggingFaceFolder(const std::filesystem::path& folder, HuggingFaceConfig config);
  const TensorLocation& location(const HuggingFaceTensor& tensor) const { return weights_.tensors().at(tensor.name); }
  void draw(std::size_t parameter, const ByteSink& sink) const;

  std::filesystem::path folder_;
  ModelConfig model_;
  std::string unusable_head_;
  HuggingFaceWeights weights_;
  std::vector<Parameter> parameters_;
  std::vector<HuggingFaceTensors> tensors_;  // of the parameters, in their order
  std::vector<std::string> drawn_;
};

}  // namespace teratron
