// GPT-2s of the programs that users come from: nanoGPT's ckpt.pt, llm.c's model files, Megatron-LM's
// model_optim_rng.pt. Each format has a reader of its own (nanogpt.cc, llm_c.cc, megatron.cc); a model is one of them,
// checked against its description.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/torch/torch_file.h"
#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

enum class ForeignFormat { kNanoGpt, kLlmC, kMegatron };

// A tensor as it is stored.
struct ForeignTensor {
  std::optional<DType> dtype;  // none for types that Teratron has no use for
  std::string dtype_name;
  std::vector<std::int64_t> shape;
  std::function<void(const ByteSink&)> pass_on;  // its bytes, row by row
  std::function<void()> require_intact = [] {};  // UserError: not as it was written, where the file has checksums
};

// Weights as a reader finds them.
struct ForeignWeights {
  ModelConfig model;
  std::map<std::string, ForeignTensor> tensors;  // by the mapping's names
  const HuggingFaceMapping* mapping = nullptr;
  bool lacks_biases = false;  // which are zero then
  // Groups of rows in which queries, keys and values alternate in their tensor; 0: they are apart, as ours.
  std::int64_t qkv_groups = 0;
};

// UserError, of all: missing, unsound, or a model that ours is not (all reasons at once).
ForeignWeights read_nanogpt(const std::filesystem::path& path);   // ckpt.pt, or the folder that has it
ForeignWeights read_llm_c(const std::filesystem::path& path);     // a file of version 3 (fp32) or 5 (bf16)
ForeignWeights read_megatron(const std::filesystem::path& path);  // model_optim_rng.pt, or a folder above it

// The names that nanoGPT and Hugging Face give a GPT-2's tensors; matrices are [outputs, inputs], as PyTorch has them.
const HuggingFaceMapping& nanogpt_mapping();

// Dictionary of a pickle: whole numbers, numbers, flags and texts as they are, None as null. Other values are empty
// lists, since their being there counts.
nlohmann::json json_of(const PickleValue& dictionary);
// A tensor of `file`, which it keeps open. UserError: the value is no tensor.
ForeignTensor tensor_of(const std::shared_ptr<const TorchFile>& file, const PickleValue& value,
                        const std::string& name);

class ForeignModel {
 public:
  // UserError as the readers, and where the tensors are not those of the model.
  ForeignModel(ForeignFormat format, const std::filesystem::path& path);

  const ModelConfig& model() const { return weights_.model; }
  const std::vector<Parameter>& parameters() const { return parameters_; }  // of the whole model, without memory
  bool lacks_biases() const { return weights_.lacks_biases; }

  // UserError: a tensor is damaged, or has a value that is not finite. Reads all of them.
  void require_sound() const;

  DType dtype(std::size_t parameter) const;
  // The bytes of a parameter, in our order, in that type, a few MB at a time.
  void pass_on(std::size_t parameter, const ByteSink& sink) const;

 private:
  const ForeignTensor* find(std::size_t parameter) const;  // nullptr: a bias that it lacks

  std::filesystem::path path_;
  ForeignWeights weights_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> names_;  // of the parameters there
};

// Makes the model checkpoint 0 (weights only) under `root`, as import_from_hugging_face does; files of a tokenizer in
// `tokenizer_folder` go along.
std::filesystem::path import_foreign(const ForeignModel& model, const std::filesystem::path& tokenizer_folder,
                                     const std::filesystem::path& root);

}  // namespace teratron
